package machine

import (
	"net"
	"strings"
	"time"
)

// CheckSocket says why nobody answers at a socket; nil if somebody does.
func CheckSocket(socket string) error {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// OutputDelay is how long after the end of a command its output is waited for. What
// it has written is there at once; but on a busy machine this process may not be
// there to read it.
const OutputDelay = 10 * time.Second

func LastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
