// Notifications while the page is closed: the browser's push service carries them, encrypted for this browser alone.
import { get, post } from "./api.js";

export async function subscribePush() {
  if (Notification.permission !== "granted")
    return { message: "The browser does not allow notifications for this address." };
  const worker = await navigator.serviceWorker?.ready;
  if (!worker?.pushManager) return { message: "This browser notifies while the page is open." };
  const { key } = await get("/web/push");
  try {
    const made = (await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })).toJSON();
    return await post("/web/push", { endpoint: made.endpoint, p256dh: made.keys?.p256dh, auth: made.keys?.auth });
  } catch (error) {
    if (error.status) throw error;
    return { message: "The browser reaches no push service: it notifies while the page is open." };
  }
}

export async function endPush() {
  const worker = await navigator.serviceWorker?.ready;
  await (await worker?.pushManager?.getSubscription())?.unsubscribe();
  return post("/web/push", /** @type {any} */ (null));
}
