"""The shapes of requests and answers between daemon and clients, and the table of operations: data that imports fast.

Every answer names its shape in `schema`, as `legion.<name>/<version>`. Fields are only ever added within a version.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    # For the types in operations.py, which are imported when they are used.
    from legion.wire import adoption as adoption
    from legion.wire import agents as agents
    from legion.wire import conversations as conversations
    from legion.wire import drivers as drivers
    from legion.wire import forge as forge
    from legion.wire import history as history
    from legion.wire import imports as imports
    from legion.wire import leader as leader
    from legion.wire import lessons as lessons
    from legion.wire import live as live
    from legion.wire import machine_pages as machine_pages
    from legion.wire import machines as machines
    from legion.wire import mail as mail
    from legion.wire import memories as memories
    from legion.wire import notes as notes
    from legion.wire import plans as plans
    from legion.wire import projects as projects
    from legion.wire import providers as providers
    from legion.wire import questions as questions
    from legion.wire import races as races
    from legion.wire import routines as routines
    from legion.wire import sessions as sessions
    from legion.wire import teams as teams
    from legion.wire import templates as templates
    from legion.wire import terminal as terminal
    from legion.wire import tickets as tickets
    from legion.wire import tools as tools
    from legion.wire import usage as usage
    from legion.wire import web as web
