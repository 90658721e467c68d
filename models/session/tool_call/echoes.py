"""The secrets that a tool call's result may repeat, and that are masked in it."""

from contextlib import suppress

from models.database.rows import Db
from models.errors import Unreadable
from models.pure.masking import Echoes
from models.pure.naming import OURS
from models.session.archive.reading import row_of
from models.session.tool_call.columns import ToolCallColumns
from models.session.tool_call.input import CallInput
from models.workspace.toolset import OF_SESSION

NO_ECHOES = Echoes(())
_SETTLED = "SELECT settled_at FROM tool_call WHERE id = %(id)s AND session_id = %(session)s"


def echoes_of(db: Db, call: ToolCallColumns) -> Echoes:
    """Return the masked values of the call's input, and of the input of the call whose result it reads, if it reads one."""
    call_input = CallInput.of(db, call)
    secrets = list(call_input.secrets or ())
    if call.address == OURS + OF_SESSION and isinstance(read_id := call_input.input.get("call_id"), str):
        for settled_at in db.rows(_SETTLED, id=read_id, session=call.session_id):
            # What cannot be read has no result that the call could have read: both are in one part of the archive.
            with suppress(Unreadable):
                other = row_of(db, CallInput, read_id, call.session_id, *settled_at)
                secrets += (other and other.secrets) or ()
    return Echoes(secrets)
