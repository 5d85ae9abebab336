// Requests what the first view shows before its modules are loaded. No module, so that it waits for none.
(() => {
  // The modules were faster, or this browser is not let in yet.
  if (window.early || location.hash.startsWith("#code=")) return;
  let project = "";
  let secret = "";
  try {
    secret = localStorage.getItem("legion.device") ?? "";
    project = JSON.parse(localStorage.getItem("legion.project")) ?? "";
  } catch {
    /* a browser that keeps nothing */
  }
  if (!secret) return;
  const read = (path) => fetch(path, { headers: { "legion-device": secret }, credentials: "omit" });
  const status = project ? `/v1/status?${new URLSearchParams({ cwd: project })}` : "/v1/status";
  window.early = new Map([status, "/v1/inbox", "/web/session"].map((path) => [path, read(path)]));
  // A failure is reported where the answer is used.
  for (const answer of window.early.values()) answer.catch(() => {});
})();
