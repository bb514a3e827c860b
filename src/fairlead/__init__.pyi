from fairlead.client import Client as Client
from fairlead.client import ClientError as ClientError
from fairlead.client import Job as Job
from fairlead.client import JobFailed as JobFailed
from fairlead.client import Jobs as Jobs
from fairlead.client import NameNotFound as NameNotFound
from fairlead.client import NotLoggedIn as NotLoggedIn
from fairlead.client import ServerError as ServerError
from fairlead.client import TimedOut as TimedOut
from fairlead.client import Unreachable as Unreachable
from fairlead.client import specs as specs
from fairlead.client.aio import AsyncClient as AsyncClient
from fairlead.client.aio import AsyncJob as AsyncJob
from fairlead.client.aio import AsyncJobs as AsyncJobs

__version__: str
