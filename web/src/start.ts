/** The page's first script, and small: Python starts to boot before the rest of the page is even read. */
import { isEmbedded } from "./app/first.js";

if (isEmbedded) {
  document.documentElement.classList.add("embedded");
  void import("./app/embed.js");
} else void import("./app/main.js");
