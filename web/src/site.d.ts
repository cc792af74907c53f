/** Written by tools/web/build_site.mjs; a SiteData of protocol.ts. */
declare module "virtual:site" {
  const site: unknown;
  export default site;
}

/** Written by tools/web/build_site.mjs; FileLists of service_worker.ts. */
declare module "virtual:files" {
  const files: unknown;
  export default files;
}
