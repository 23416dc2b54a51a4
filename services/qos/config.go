package qos

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of qos.
type Config struct {
	// Policies is how many policies there may be.
	Policies int `yaml:"policies"`
	// Entries is how many flow entries the policies may take on one switch.
	Entries int `yaml:"entries"`
	// Deadline is how long a change waits for the switches to confirm it, and
	// how long one may take to tell its counters.
	Deadline time.Duration `yaml:"deadline"`
	// OVSDB is where the configuration databases of switches are, by which queues
	// are made: tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH, in which {address} is
	// the address that the switch connects from, and {dpid} its datapath identifier.
	// Empty: queues are refused.
	OVSDB string `yaml:"ovsdb" start:"true"`
	// OVSDBSwitches are the databases of single switches, by datapath identifier.
	OVSDBSwitches map[string]string `yaml:"ovsdb_switches" start:"true"`
	// VSCtl is the program that changes databases.
	VSCtl string `yaml:"vsctl" start:"true"`
	// VSCtlOptions are given to it before all else, such as --private-key=FILE.
	VSCtlOptions []string `yaml:"vsctl_options" start:"true"`
	// VSCtlTimeout is how long one run of it may take.
	VSCtlTimeout time.Duration `yaml:"vsctl_timeout"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{Policies: 1000, Entries: 4096, Deadline: 5 * time.Second, VSCtl: "ovs-vsctl", VSCtlTimeout: 5 * time.Second}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key     string
		is, max int
	}{{"policies", c.Policies, 10_000}, {"entries", c.Entries, flow.PriorityQoS - 1}} {
		if n.is < 1 || n.is > n.max {
			return fmt.Errorf("%s is %d: want 1 to %d", n.key, n.is, n.max)
		}
	}
	for _, d := range []struct {
		key string
		is  time.Duration
	}{{"deadline", c.Deadline}, {"vsctl_timeout", c.VSCtlTimeout}} {
		if d.is < 100*time.Millisecond || d.is > time.Minute {
			return fmt.Errorf("%s is %v: want 100ms to 1m", d.key, d.is)
		}
	}
	if c.VSCtl == "" || strings.HasPrefix(c.VSCtl, "-") {
		return fmt.Errorf("vsctl is %q: want a program, such as ovs-vsctl", c.VSCtl)
	}
	for i, o := range c.VSCtlOptions {
		if !strings.HasPrefix(o, "-") {
			return fmt.Errorf("vsctl_options[%d] is %q: want an option, such as --private-key=FILE", i, o)
		}
	}
	if err := checkDatabase("ovsdb", c.OVSDB, true); err != nil {
		return err
	}
	for sw, target := range c.OVSDBSwitches {
		if _, err := flow.ParseDPID(sw); err != nil {
			return fmt.Errorf("ovsdb_switches: %w", err)
		}
		if err := checkDatabase("ovsdb_switches["+sw+"]", target, false); err != nil {
			return err
		}
	}
	return nil
}

var databaseForm = regexp.MustCompile(`^(tcp|ssl):(\[[0-9a-fA-F:.{}a-z]+\]|[A-Za-z0-9.{}_-]+):[0-9]{1,5}$|^unix:[A-Za-z0-9/._{}@+-]+$`)

// checkDatabase checks the address of a database.
func checkDatabase(key, target string, optional bool) error {
	if target == "" && optional {
		return nil
	}
	bare := strings.NewReplacer("{address}", "a", "{dpid}", "d").Replace(target)
	if !databaseForm.MatchString(target) || strings.ContainsAny(bare, "{}") {
		return fmt.Errorf("%s is %q: want tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH; {address} and {dpid} stand for the switch's", key, target)
	}
	return nil
}

// database returns where the database of a switch is, given the address that
// the switch connects from, if it has one; false if that is not configured, or not
// known of such an address. A zone, which could be any text, is left out.
func (c *Config) database(sw flow.DPID, address netip.Addr) (string, bool) {
	target := c.OVSDB
	for name, t := range c.OVSDBSwitches {
		if d, err := flow.ParseDPID(name); err == nil && d == sw {
			target = t
		}
	}
	at := "unknown" // of a socket within the machine
	if address.IsValid() {
		at = address.Unmap().WithZone("").String()
	}
	if strings.Contains(at, ":") {
		at = "[" + at + "]"
	}
	return strings.NewReplacer("{address}", at, "{dpid}", sw.String()).Replace(target), target != ""
}
