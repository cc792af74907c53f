/** The form for a host's address and token, which a tab remembers until it is closed. */
const form = document.querySelector("form");
const status = document.getElementById("status");

export const say = (text) => (status.textContent = text);

const given = new URLSearchParams(location.hash.slice(1)); // #address=ws://…&token=…
for (const name of ["address", "token"])
  form.elements[name].value = given.get(name) ?? sessionStorage.getItem(name) ?? form.elements[name].value;
if (given.size) history.replaceState(null, "", location.pathname); // a token does not stay in the address bar

/** Calls `start({ url, token })` when the form is sent, and shows what it throws. */
export function onConnect(start) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [url, token] = ["address", "token"].map((name) => form.elements[name].value);
    sessionStorage.setItem("address", url);
    sessionStorage.setItem("token", token);
    form.querySelector("button").disabled = true;
    try {
      await start({ url, token });
    } catch (error) {
      say(error.message);
      form.querySelector("button").disabled = false;
    }
  });
}

/** What the form has, for a page that goes on after a reload. */
export const remembered = () => ({ url: form.elements.address.value, token: form.elements.token.value });
