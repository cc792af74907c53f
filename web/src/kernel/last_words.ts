/** What a program is told to have done that ended Python itself. */
import type { ProgramError } from "./protocol.js";

const AFTER = "Python has ended by it and was started again; what cells before this one defined is gone";

/** An error after which Pyodide is beyond use; null for all others. */
export function lastWords(error: unknown): ProgramError | null {
  const { name, message, pyodide_fatal_error } = (error ?? {}) as {
    name?: string;
    message?: string;
    pyodide_fatal_error?: boolean;
  };
  const exit = /^Program terminated with exit\((\d+)\)/.exec(message ?? "");
  if (exit) return told("SystemExit", `${exit[1]}: the program left Python altogether. ${AFTER}`);
  if (!pyodide_fatal_error) return null;
  if (name === "RangeError" || name === "InternalError") {
    return told("RecursionError", `calls, or data in data, go deeper than the stack of a page. ${AFTER}`);
  }
  return told("SystemError", `Python broke off (${message}). ${AFTER}`);
}

function told(type: string, message: string): ProgramError {
  const short = `${type}: ${message}`;
  return { type, class: `builtins.${type}`, message, line: null, column: null, short, full: null };
}
