/** When the colours around an element change: by the system, by the page, by an attribute, whatever the reason. */

/** A figure draws on a canvas, which does not follow CSS: a probe's colour does, and its transition tells. */
export function onColours(listener: () => void, element: HTMLElement): () => void {
  const probe = document.createElement("span");
  probe.className = "probe";
  probe.ariaHidden = "true";
  probe.addEventListener("transitionend", listener);
  element.append(probe);
  return () => probe.remove();
}
