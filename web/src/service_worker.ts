/**
 * Adds the headers of cross-origin isolation where a host can't send them (from the second visit on), so that Stop can
 * interrupt Python and programs may use threads. Registered only where the headers are missing.
 */
const scope = self as unknown as ServiceWorkerGlobalScope;

scope.addEventListener("install", () => void scope.skipWaiting());
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (new URL(request.url).origin !== scope.location.origin) return;
  event.respondWith(
    fetch(request).then((response) => {
      if (response.status === 0) return response;
      const headers = new Headers(response.headers);
      headers.set("Cross-Origin-Opener-Policy", "same-origin");
      headers.set("Cross-Origin-Embedder-Policy", "require-corp");
      headers.set("Cross-Origin-Resource-Policy", "same-origin");
      const body = [101, 204, 205, 304].includes(response.status) ? null : response.body;
      return new Response(body, { status: response.status, statusText: response.statusText, headers });
    }),
  );
});
