package gateway

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/localsocket"
)

// minToken is the shortest token that is not guessed by trying.
const minToken = 16

// Config is how the northbound is offered.
type Config struct {
	// Listen is HOST:PORT of the one port for everything. An address other
	// than loopback needs a token.
	Listen string `yaml:"listen" start:"file"`
	// Certificate is the file of the server's certificate (PEM; weft certs
	// controller): with it the port speaks TLS. It is read again when it
	// changes, as is Key; connections go on.
	Certificate string `yaml:"certificate" start:"true"`
	// Key is the file of the certificate's key; its mode must be 0600 or less.
	Key string `yaml:"key" start:"true"`
	// ClientAuthority is the file of the authorities (PEM) whose certificates clients
	// may show instead of a token (weft certs issue --role). It is read again when it
	// changes. Empty: tokens only.
	ClientAuthority string `yaml:"client_authority" start:"true"`
	// Token is a token with the role admin, besides those that clients have
	// made (weft token); if it is set, everybody must present one.
	Token string `yaml:"token"`
	// TokenFile holds the token instead; its mode must be 0600 or less. It is
	// read again when it changes.
	TokenFile string `yaml:"token_file" start:"true"`
	// OpenLoopback lets in users of this machine without a token, unless Token or
	// TokenFile is set: root and the user who runs the controller as admin, others
	// to read.
	OpenLoopback bool `yaml:"open_loopback"`
	// Users are others of this machine, by name or number, and their roles when
	// they come without a token: read, operate or admin.
	Users map[string]string `yaml:"users"`
	// WrongTokensPerMinute bounds the wrong tokens that are looked at in a minute
	// of one address or, from this machine, of one user.
	WrongTokensPerMinute int `yaml:"wrong_tokens_per_minute"`
	// AuditSize is the size of a file of the audit log, in octets, at which the
	// next is begun.
	AuditSize int `yaml:"audit_size"`
	// AuditFiles bounds the files of the audit log, and those with what was refused;
	// the oldest go.
	AuditFiles int `yaml:"audit_files"`
	// Lab is the socket of weft lab serve on this machine, which answers /v1/lab;
	// empty: none does.
	Lab string `yaml:"lab" start:"true"`
	// Experiments is the socket of weft experiment serve on this machine, which
	// answers /v1/experiments; empty: none does.
	Experiments string `yaml:"experiments" start:"true"`
	// CallTimeout bounds every call of a client.
	CallTimeout time.Duration `yaml:"call_timeout"`
	// MaxConnections bounds the connections at any time, and never exceeds a
	// quarter of the files that the process may have open. For one more, one that
	// is idle is closed, or follows events, or is served; operators' go last.
	MaxConnections int `yaml:"max_connections"`
	// MaxConnectionsPerAddress bounds those of one client in the same way: of one
	// address (of IPv6: of one /64) or, from this machine, of one user.
	MaxConnectionsPerAddress int `yaml:"max_connections_per_address"`
	// MaxOctets bounds what all requests and answers under way hold; those of
	// clients that may only read hold half of it at most.
	MaxOctets int `yaml:"max_octets"`
	// MaxOctetsPerAddress bounds what those of one client hold.
	MaxOctetsPerAddress int `yaml:"max_octets_per_address"`
	// MaxEventClients bounds the clients of the event stream. For one more, one of a
	// lower role is dropped, or of a client that has more than others.
	MaxEventClients int `yaml:"max_event_clients"`
	// EventQueue bounds the events by which a client of the event stream may be
	// behind; one that is behind by more reads the state anew.
	EventQueue int `yaml:"event_queue"`
}

func defaults() *Config {
	return &Config{
		Listen:                   "127.0.0.1:8181",
		OpenLoopback:             true,
		WrongTokensPerMinute:     10,
		AuditSize:                8 << 20,
		AuditFiles:               8,
		CallTimeout:              time.Minute,
		MaxConnections:           1024,
		MaxConnectionsPerAddress: 512,
		MaxOctets:                128 << 20,
		MaxOctetsPerAddress:      32 << 20,
		MaxEventClients:          64,
		EventQueue:               4096,
	}
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %q: want HOST:PORT, such as 127.0.0.1:8181", c.Listen)
	}
	switch {
	case c.Token != "" && c.TokenFile != "":
		return fmt.Errorf("token: set as well as token_file; set one of them")
	case c.Token != "" && len(c.Token) < minToken:
		return fmt.Errorf("token: %d characters; want at least %d, such as those of `openssl rand -hex 16`", len(c.Token), minToken)
	case strings.ContainsAny(c.Token, " \t\r\n"):
		return fmt.Errorf("token: has white space in it; want printable characters only")
	case !c.private() && c.OpenLoopback && !localsocket.Loopback(host):
		return fmt.Errorf("listen: %s is not a loopback address, so whoever reaches it could control the network: set token or token_file, or open_loopback: false if there are tokens of weft token, or listen on 127.0.0.1", c.Listen)
	case c.ClientAuthority != "" && c.Certificate == "":
		return fmt.Errorf("client_authority: clients show certificates over TLS only: set certificate and key, too (weft certs controller)")
	case (c.Certificate == "") != (c.Key == ""):
		return fmt.Errorf("certificate: it needs key, and key needs certificate: set both (weft certs controller), or none")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Users)) {
		if r, err := parseRole(c.Users[name]); err != nil || r < roleRead || name == "" {
			return fmt.Errorf("users: %s: %q: want a user and its role: %s", name, c.Users[name], strings.Join(roleNames[roleRead:], ", "))
		}
	}
	if c.CallTimeout < 100*time.Millisecond {
		return fmt.Errorf("call_timeout: %v: want at least 100ms", c.CallTimeout)
	}
	if c.AuditSize < 64<<10 || c.AuditSize > 1<<30 {
		return fmt.Errorf("audit_size: %d: want %d to %d octets", c.AuditSize, 64<<10, 1<<30)
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"max_octets", c.MaxOctets}, {"max_octets_per_address", c.MaxOctetsPerAddress}} {
		if n.value < 2*maxBody || n.value > 1<<30 {
			return fmt.Errorf("%s: %d: want %d to %d octets", n.key, n.value, 2*maxBody, 1<<30)
		}
	}
	for _, n := range []struct {
		key        string
		value, max int
	}{
		{"wrong_tokens_per_minute", c.WrongTokensPerMinute, 1_000_000}, {"audit_files", c.AuditFiles, 1000},
		{"max_connections", c.MaxConnections, 1_000_000}, {"max_connections_per_address", c.MaxConnectionsPerAddress, 1_000_000}, {"max_event_clients", c.MaxEventClients, 100_000}, {"event_queue", c.EventQueue, 1_000_000},
	} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("%s: %d: want 1 to %d", n.key, n.value, n.max)
		}
	}
	return nil
}

// userRoles returns the roles of users by their numbers.
func (c *Config) userRoles() (map[int]role, error) {
	roles := map[int]role{}
	for name, text := range c.Users {
		uid, err := localsocket.UserID(name)
		if err != nil {
			return nil, fmt.Errorf("gateway.users: %w", err)
		}
		r, err := parseRole(text)
		if err != nil {
			return nil, fmt.Errorf("gateway.users: %w", err)
		}
		roles[uid] = max(roles[uid], r)
	}
	return roles, nil
}

// private reports whether the configuration has a token.
func (c *Config) private() bool { return c.Token != "" || c.TokenFile != "" }
