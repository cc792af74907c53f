/** The page's first script, and small: Python starts to boot before the rest of the page is even read. */
import "./kernel/boot.js";

void import("./app/main.js");
