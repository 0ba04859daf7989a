// Touch on a well: a tap turns, a drag to the side moves, a drag down moves down, and a fast swipe down drops.

/** Maximum duration in milliseconds and minimum length in cells of a swipe. */
const SWIPE_TIME = 250;
const SWIPE_LENGTH = 3;

/** Calls `press` with the letters of the keys. `width` is the number of columns of the well. */
export function addTouch(canvas, width, press) {
  let touch = null;
  const cell = () => canvas.clientWidth / width;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    touch = { x: event.clientX, y: event.clientY, top: event.clientY, time: event.timeStamp, hasMoved: false, downs: 0 };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (touch === null) return;
    const side = Math.trunc((event.clientX - touch.x) / cell());
    const down = Math.trunc((event.clientY - touch.y) / cell());
    if (side !== 0) {
      touch.x += side * cell();
      touch.hasMoved = true;
      press((side < 0 ? "L" : "R").repeat(Math.abs(side)));
    } else if (down > 0) {
      touch.y += down * cell();
      touch.downs += down;
      touch.hasMoved = true;
      // A swipe drops the piece when the finger leaves.
      if (event.timeStamp - touch.time > SWIPE_TIME) press("D".repeat(down));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (touch === null) return;
    const { hasMoved, downs, time } = touch;
    touch = null;
    if (!hasMoved) press("U");
    else if (event.timeStamp - time <= SWIPE_TIME) {
      if (downs >= SWIPE_LENGTH) press("H");
      else if (downs > 0) press("D".repeat(downs));
    }
  });
  canvas.addEventListener("pointercancel", () => {
    touch = null;
  });
}
