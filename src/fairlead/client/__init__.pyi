from fairlead.client.access.tokens import Credentials as Credentials
from fairlead.client.access.tokens import TokenFile as TokenFile
from fairlead.client.access.tokens import application as application
from fairlead.client.access.tokens import password as password
from fairlead.client.access.urls import Trust as Trust
from fairlead.client.client import Client as Client
from fairlead.client.errors import ClientError as ClientError
from fairlead.client.errors import Issue as Issue
from fairlead.client.errors import JobFailed as JobFailed
from fairlead.client.errors import NameNotFound as NameNotFound
from fairlead.client.errors import NotLoggedIn as NotLoggedIn
from fairlead.client.errors import ServerError as ServerError
from fairlead.client.errors import TimedOut as TimedOut
from fairlead.client.errors import Unreachable as Unreachable
from fairlead.client.jobs import Job as Job
from fairlead.client.jobs import Jobs as Jobs
from fairlead.client.kind_client import KindClient as KindClient

__all__: list[str]
