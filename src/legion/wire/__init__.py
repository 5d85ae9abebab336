"""The shapes of requests and answers between daemon and clients, and the table of operations: data that imports fast.

Every answer names its shape in `schema`, as `legion.<name>/<version>`. Fields are only ever added within a version.
"""

SUBJECTS = (
    "tickets",
    "projects",
    "board",
    "ticket_pages",
    "history",
    "dispatch",
    "agents",
    "mail",
    "plans",
    "templates",
    "terminal",
    "sessions",
    "forge",
    "notes",
    "teams",
    "providers",
    "conversations",
    "machines",
    "web",
)
"""The modules with rows, those first that most commands use."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    # For the types in rows, whose modules are imported when they are used.
    from legion.wire import agents as agents
    from legion.wire import board as board
    from legion.wire import conversations as conversations
    from legion.wire import dispatch as dispatch
    from legion.wire import forge as forge
    from legion.wire import history as history
    from legion.wire import machines as machines
    from legion.wire import mail as mail
    from legion.wire import notes as notes
    from legion.wire import orchestrate as orchestrate
    from legion.wire import plans as plans
    from legion.wire import projects as projects
    from legion.wire import providers as providers
    from legion.wire import sessions as sessions
    from legion.wire import teams as teams
    from legion.wire import templates as templates
    from legion.wire import terminal as terminal
    from legion.wire import ticket_pages as ticket_pages
    from legion.wire import tickets as tickets
    from legion.wire import web as web
