package command

import (
	"os"
	"strconv"

	"github.com/weft-sdn/weft/cmd/weft/run"
)

// socketGroupHelp is the help of --group of services of the machine.
const socketGroupHelp = "group that may open the socket, besides its owner: name or number (default: if root serves, that of a controller that root starts)"

// socketGroup returns the group that may open a socket if none was named: what
// root serves is for a controller that root has started, which becomes another user.
func socketGroup(named string) (string, error) {
	if named != "" || os.Geteuid() != 0 {
		return named, nil
	}
	account, err := run.ChooseAccount("", "")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(account.GID), nil
}
