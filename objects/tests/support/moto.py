"""Runs moto's server, with conditional writes that are atomic like those of S3.

moto checks the condition of a write and stores the object in separate steps, in a thread for each request. Without the
lock, two writers can both find that an object is absent, and both succeed.
"""

import sys
import threading

from moto.s3.responses import S3Response
from moto.server import main

put_object = S3Response.put_object
lock = threading.Lock()


def put_object_atomically(self):
    with lock:
        return put_object(self)


S3Response.put_object = put_object_atomically
sys.exit(main())
