// Requests what the first view shows before its modules are loaded. No module, so that it waits for none.
(() => {
  if (location.hash.startsWith("#code=")) return;
  const read = (path) => fetch(path, { headers: { "legion-page": "1" }, credentials: "same-origin" });
  let project = "";
  try {
    project = JSON.parse(localStorage.getItem("legion.project")) ?? "";
  } catch { /* a browser that keeps nothing */ }
  const status = project ? `/v1/status?${new URLSearchParams({ cwd: project })}` : "/v1/status";
  window.early = new Map([status, "/v1/inbox", "/web/session"].map((path) => [path, read(path)]));
  // A failure is reported where the answer is used.
  for (const answer of window.early.values()) answer.catch(() => {});
})();
