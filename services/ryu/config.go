package ryu

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/weft-sdn/weft/internal/localsocket"
)

// Config is how Ryu's REST is offered.
type Config struct {
	// Listen is HOST:PORT, such as 127.0.0.1:8080; empty is off.
	Listen string `yaml:"listen" start:"file"`
	// Exposed allows an address other than loopback, and lets everybody who
	// reaches it control the network, other users of this machine included:
	// Ryu's REST asks nobody who they are.
	Exposed bool `yaml:"exposed"`
	// Users are those of this machine, by name or number, who may change
	// something, besides root and the user who runs the controller; others only
	// read.
	Users []string `yaml:"users"`
	// TokenFile holds a token; who sends it as Authorization: Bearer TOKEN may
	// change something, too. Its mode must be 0600 or less.
	TokenFile string `yaml:"token_file" start:"true"`
	// ReportRefusals answers 400 where a switch refuses a command. Ryu does not
	// wait for the switch and answers 200; so does Weft, with a header
	// Weft-Refused, as long as this is off.
	ReportRefusals bool `yaml:"report_refusals"`
	// CallTimeout bounds the time for one request.
	CallTimeout time.Duration `yaml:"call_timeout"`
	// MaxConnections bounds the connections at any time, and never exceeds a
	// quarter of the files that the process may have open; one client, an address
	// or a user of this machine, has half of it at most. For one more, one that is
	// idle is closed, or follows events, or is served; last, one of who may change
	// something.
	MaxConnections int `yaml:"max_connections"`
	// MaxEventClients bounds the clients of the WebSocket. For one more that may
	// change something, the oldest that may not is dropped.
	MaxEventClients int `yaml:"max_event_clients"`
	// EventQueue bounds the events that wait for one client; a client that
	// lets more wait is dropped.
	EventQueue int `yaml:"event_queue"`
}

func defaults() *Config {
	return &Config{CallTimeout: 10 * time.Second, MaxConnections: 256, MaxEventClients: 64, EventQueue: 4096}
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	if c.Listen != "" {
		host, _, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return fmt.Errorf("listen: %q: want HOST:PORT, such as 127.0.0.1:8080, or nothing", c.Listen)
		}
		if !c.Exposed && !localsocket.Loopback(host) {
			return fmt.Errorf("listen: %s is not a loopback address, and Ryu's REST knows no passwords: listen on 127.0.0.1, or set exposed: true if all who reach it may control the network", c.Listen)
		}
	}
	if slices.Contains(c.Users, "") {
		return fmt.Errorf("users: want names or numbers of users, not an empty text")
	}
	if c.CallTimeout < 100*time.Millisecond {
		return fmt.Errorf("call_timeout: %v: want at least 100ms", c.CallTimeout)
	}
	for _, n := range []struct {
		key        string
		value, max int
	}{
		{"max_connections", c.MaxConnections, 1_000_000}, {"max_event_clients", c.MaxEventClients, 100_000}, {"event_queue", c.EventQueue, 1_000_000},
	} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("%s: %d: want 1 to %d", n.key, n.value, n.max)
		}
	}
	return nil
}
