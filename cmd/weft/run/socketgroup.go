package run

import (
	"os"
	"strconv"
)

// SocketGroupHelp is the help of --group of services of the machine.
const SocketGroupHelp = "group that may open the socket, besides its owner: name or number (default: if root serves, that of a controller that root starts)"

// SocketGroup returns the group that may open a socket if none was named: what
// root serves is for a controller that root has started, which becomes another user.
func SocketGroup(named string) (string, error) {
	if named != "" || os.Geteuid() != 0 {
		return named, nil
	}
	account, err := ChooseAccount("", "")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(account.GID), nil
}
