// Tickets are moved with the mouse where that is legal; a phone has the same as buttons on the ticket.
import { act, mayAct, reread } from "../state.js";
import { post } from "../api.js";
import { confirmed } from "../parts.js";

let dragged = /** @type {any} */ (null);

// What dropping a ticket on a column does, if the daemon offers it: column, operation, last part of the path, question.
const MOVES = [
  ["Needs you", "pause_ticket", "pause", "Pause it?"],
  ["Working", "resume_ticket", "resume", "Resume it?"],
  ["Queued", "resume_ticket", "resume", "Resume it?"],
  ["Queued", "retry", "retry", "Retry it?"],
  ["Landing", "land", "land", "Land it?"],
  ["Ended", "stop", "stop", "Stop it? Its work is kept."],
];
/** @returns {any} */
const moveTo = (column) => MOVES.find(([to, operation]) => to === column && dragged?.offers.includes(operation));
const columns = () => [...document.querySelectorAll(".column")];

export const ofCard = (one) =>
  mayAct.value && {
    draggable: true,
    onDragStart: (event) => {
      dragged = one;
      event.dataTransfer.setData("text/plain", `#${one.id}`);
      event.dataTransfer.effectAllowed = "move";
      const from = event.currentTarget.closest(".column");
      for (const column of columns())
        column.classList.toggle("legal", column !== from && Boolean(moveTo(column.ariaLabel)));
    },
    onDragEnd: () => {
      dragged = null;
      mark(null);
      for (const column of columns()) column.classList.remove("legal");
    },
  };

function mark(column) {
  for (const other of columns()) other.classList.toggle("drop", other === column);
}

// In the column Landing, a change dropped on another one lands before it.
function before(event, column) {
  if (column !== "Landing" || dragged?.state !== "landing") return 0;
  const other = Number(event.target.closest?.(".card")?.dataset.ticket) || 0;
  return other === dragged.id ? 0 : other;
}

const isLegal = (event, column) =>
  Boolean(before(event, column) || (event.currentTarget.classList.contains("legal") && moveTo(column)));

export const ofColumn = (column) =>
  mayAct.value && {
    onDragOver: (event) => {
      if (isLegal(event, column)) {
        event.preventDefault();
        mark(event.currentTarget);
      }
    },
    onDragLeave: (event) => {
      if (!event.currentTarget.contains(event.relatedTarget)) mark(null);
    },
    onDrop: async (event) => {
      event.preventDefault();
      const [one, other, move] = [dragged, before(event, column), moveTo(column)];
      mark(null);
      if (!one) return;
      const name = `#${one.id} ${one.title}`;
      if (!other && !(await confirmed(`${move[3]}\n${name}`))) return;
      await act(() =>
        other
          ? post(`/v1/tickets/${one.id}/place`, { to: String(other) })
          : post(`/v1/tickets/${one.id}/${move[2]}`, {}, { waits: true }),
      );
      reread();
    },
  };
