/** Written by tools/web/build_site.mjs; a SiteData of protocol.ts. */
declare module "virtual:site" {
  const site: unknown;
  export default site;
}
