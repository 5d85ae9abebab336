// Tickets are moved with the mouse where that is legal; a phone has the same as buttons on the ticket.
import { act, mayAct, reread } from "../state.js";
import { post } from "../api.js";
import { ENDED } from "../format.js";

let dragged = null;

// What dropping a ticket on a column does: the last part of the request's path, or nothing where it is not legal.
function verbOf(one, column) {
  if (column === "Needs you" && one.state === "working") return "pause";
  if ((column === "Working" || column === "Queued") && one.state === "parked") return "resume";
  if (column === "Queued" && (one.state === "failed" || one.state === "stopped")) return "retry";
  if (column === "Landing" && one.state === "parked") return "land";
  if (column === "Ended" && !ENDED.has(one.state)) return "stop";
  return "";
}

export const ofCard = (one) => mayAct.value && {
  draggable: true,
  onDragStart: (event) => { dragged = one; event.dataTransfer.setData("text/plain", `#${one.id}`); event.dataTransfer.effectAllowed = "move"; },
  onDragEnd: () => { dragged = null; mark(null); },
};

function mark(column) {
  for (const other of document.querySelectorAll(".column.drop")) if (other !== column) other.classList.remove("drop");
  column?.classList.add("drop");
}

// In the column Landing, a change dropped on another one lands before it.
const before = (event, column) => (column === "Landing" && dragged?.state === "landing" ? Number(event.target.closest?.(".card")?.dataset.ticket) || 0 : 0);
const isLegal = (event, column) => Boolean(dragged && (verbOf(dragged, column) || (before(event, column) && before(event, column) !== dragged.id)));

export const ofColumn = (column) => mayAct.value && {
  onDragOver: (event) => { if (isLegal(event, column)) { event.preventDefault(); mark(event.currentTarget); } },
  onDragLeave: (event) => { if (!event.currentTarget.contains(event.relatedTarget)) mark(null); },
  onDrop: async (event) => {
    event.preventDefault();
    const [one, verb, other] = [dragged, dragged && verbOf(dragged, column), before(event, column)];
    mark(null);
    if (!one) return;
    await act(() => (verb ? post(`/v1/tickets/${one.id}/${verb}`, {}, { waits: true }) : post(`/v1/tickets/${one.id}/place`, { to: String(other) })));
    reread();
  },
};
