declare module "temml/dist/Temml-Local.css" {
  const text: string;
  export default text;
}
