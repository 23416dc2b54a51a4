// Focus that gets lost because what had it was disabled, or is behind a dialog or gone, comes back.

let last: HTMLElement | undefined;
let disabled: HTMLElement | undefined;

const nowhere = () => !document.activeElement || document.activeElement === document.body;
const usable = (e: HTMLElement) => e.isConnected && !e.matches(":disabled") && e.getClientRects().length > 0;

/** keepFocus gives a button that was disabled while it worked the focus back, until the function that it returns is called. */
export function keepFocus(): () => void {
  const focused = (e: FocusEvent) => {
    if (e.target instanceof HTMLElement) [last, disabled] = [e.target, undefined];
  };
  const watch = new MutationObserver((all) => {
    for (const { target } of all) {
      if (target === last && last?.matches(":disabled")) disabled = last;
      else if (target === disabled && disabled && usable(disabled) && nowhere()) disabled.focus();
    }
  });
  addEventListener("focusin", focused);
  watch.observe(document.body, { subtree: true, attributes: true, attributeFilter: ["disabled"] });
  return () => {
    removeEventListener("focusin", focused);
    watch.disconnect();
  };
}

/** opener returns a function that gives the focus back to what has it, or had it last: at once, or when that is enabled again; to the
 * page if that is gone. */
export function opener(): () => void {
  const main = () => document.querySelector<HTMLElement>("#main");
  const before = nowhere() || document.activeElement === main() ? last : (document.activeElement as HTMLElement);
  return function back(tries = 100) {
    if (before && usable(before)) before.focus();
    else if (before?.isConnected && before.matches(":disabled") && tries > 0) setTimeout(() => nowhere() && back(tries - 1), 100);
    else main()?.focus();
  };
}
