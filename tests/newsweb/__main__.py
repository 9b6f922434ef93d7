"""``python -m tests.newsweb``"""

import sys

from tests.newsweb.server import main

sys.exit(main())
