/** Files that the build places beside the scripts: their addresses, relative to the script. */
declare module "*.wasm" {
  const file: string;
  export default file;
}

declare module "*.css";
