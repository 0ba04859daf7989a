// Touch gestures on a well. A tap turns the piece, a drag moves it left, right or down, and a fast swipe down drops it.

/** Maximum duration of a swipe in milliseconds. */
const SWIPE_TIME = 250;
/** Minimum length of a swipe in cells. */
const SWIPE_LENGTH = 3;

/** Calls `press` with the key letters of each gesture. `width` is the number of columns in the well. */
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
      // Until SWIPE_TIME has passed, the gesture may be a swipe, which `pointerup` handles.
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
