package socket

import (
	"fmt"
	"net"
	"os"

	"github.com/weft-sdn/weft/internal/localsocket"
)

// A socket without TLS is for this machine, and on it for one user: who runs
// the process, and root. The kernel knows whose the other end of a connection
// is.

// admit reports why who has connected to a socket without TLS is not let in.
func admit(conn net.Conn) error {
	uid, err := localsocket.Owner(conn)
	if err != nil {
		return fmt.Errorf("whose connection this is cannot be told (%w); give certificates (weft certs)", err)
	}
	if me := os.Geteuid(); uid != 0 && uid != me {
		return fmt.Errorf("this port is for user %d, who runs Weft, and root; you are user %d: run as that user, or give certificates (weft certs)", me, uid)
	}
	return nil
}
