package southbound

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// Config is how switches are received.
type Config struct {
	// Listen lists where switches connect: tls:HOST:PORT, tcp:HOST:PORT or
	// unix:PATH. With tls, switches must show a certificate that names them.
	Listen []string `yaml:"listen" start:"file"`
	// Plain lets tcp be used at addresses other than loopback: whoever reaches
	// them can pose as a switch.
	Plain bool `yaml:"plain"`
	// Certificate is the file of the certificate that switches are shown (PEM;
	// weft certs controller). It is read again when it changes, as are Key and
	// Authority; sessions go on.
	Certificate string `yaml:"certificate" start:"true"`
	// Key is the file of the certificate's key; its mode must be 0600 or less.
	Key string `yaml:"key" start:"true"`
	// Authority is the file of the authority that switches' certificates must
	// be of; several while one replaces another.
	Authority string `yaml:"authority" start:"true"`
	// Identities lists the switches that a certificate is for, by its common
	// name or by sha256: and its digest, besides those that its own URIs
	// weft://switch/DPID name.
	Identities map[string][]string `yaml:"identities"`
	// Switches lists those that are received: DPIDs and ranges of them in
	// hexadecimal digits (10, 1-8), or rest for all that Elsewhere does not
	// list. None means rest. A plan with partitions sets it.
	Switches []string `yaml:"switches"`
	// Elsewhere lists the switches of other partitions, by their names, for
	// messages about a switch that connects to the wrong one. A plan with
	// partitions sets it.
	Elsewhere map[string][]string `yaml:"elsewhere"`
	// StandbyListen lists where the standbys of a plan have switches connect: the
	// first standby at the first address, and so on. One for which there is none
	// uses Listen, which fits where it is on another machine.
	StandbyListen []string `yaml:"standby_listen" start:"file"`
	// Standbys is how many processes stand by for this one; with none the
	// mastership does not end by itself. A plan with a standby sets it.
	Standbys int `yaml:"standbys"`
	// Standby is which of them this process is; 0 is none. A plan with a standby
	// sets it.
	Standby int `yaml:"standby"`
	// Instance is the name by which others know who is master. A plan with a
	// standby sets it.
	Instance string `yaml:"instance"`
	// LeaseTime is for how long nobody else may become master after the master
	// has renewed its lease: with a standby, how long a master that is dead or
	// silent goes unnoticed.
	LeaseTime time.Duration `yaml:"lease_time"`
	// LeaseRenew is how often the master renews its lease.
	LeaseRenew time.Duration `yaml:"lease_renew"`
	// HoldOthers has sessions of other partitions' switches held ready instead of
	// refused: a plan that moves such a switch here needs no new connection, and
	// loses nothing. Its bridge has both as controllers.
	HoldOthers bool `yaml:"hold_others"`
	// HandshakeTimeout is how long a new connection may take to become a switch.
	HandshakeTimeout time.Duration `yaml:"handshake_timeout"`
	// EchoInterval is the silence after which a switch is asked for an echo.
	EchoInterval time.Duration `yaml:"echo_interval"`
	// DeadAfter is the silence after which a connection is given up.
	DeadAfter time.Duration `yaml:"dead_after"`
	// WriteTimeout is how long a switch may refuse to read.
	WriteTimeout time.Duration `yaml:"write_timeout"`
	// ConfirmTimeout is how long a switch may take to confirm by barrier, or
	// to answer a request for statistics.
	ConfirmTimeout time.Duration `yaml:"confirm_timeout"`
	// QueueBytes bounds what waits to be sent to one switch.
	QueueBytes int `yaml:"queue_bytes"`
	// SessionBytes bounds the memory that is held for one switch: what it has
	// sent and has not been dealt with, its ports, what it does not read. An
	// eighth of it is for its handshake, and for one answer of the switch. Whoever
	// exceeds it is disconnected.
	SessionBytes int `yaml:"session_bytes"`
	// TotalBytes bounds the memory that is held for all switches. An eighth of it
	// is for those that are at their handshake. Where it is used up, of these the
	// one that holds most is disconnected; if there are none, the longest answer
	// of a switch is given up.
	TotalBytes int `yaml:"total_bytes"`
	// NewSessionsPerSecond bounds how fast connections are accepted; the rest
	// wait in the kernel's queue.
	NewSessionsPerSecond int `yaml:"new_sessions_per_second"`
	// MaxSessions bounds the connections at any time.
	MaxSessions int `yaml:"max_sessions"`
	// PortEventsPerSecond bounds the port-status events passed on for one
	// port; of a faster flood only the latest state is.
	PortEventsPerSecond int `yaml:"port_events_per_second"`
	// FloodRate is how many packet-ins a second of one port may be a flood, if
	// they are also FloodFactor times those of other busy ports, and others
	// wait: other ports of the switch send packet-ins; or the processor or the
	// switch's queue is full, and there are probes of other ports, or other
	// switches. 0 turns the limits off.
	FloodRate int `yaml:"flood_rate"`
	// FloodFactor is how many times what busy ports of its switch send, or,
	// for a port that sends alone, other switches, a port sends before it may be
	// limited. A load that more than a quarter of the ports share is no flood.
	FloodFactor int `yaml:"flood_factor"`
	// FloodFloor is how many packet-ins a second of each class every port may
	// send, whatever others do; and, while the switch's packet-ins wait to be
	// dealt with, what may be a flood.
	FloodFloor int `yaml:"flood_floor"`
	// FloodMeters has a meter put into the switch of a port that is limited, so
	// that most is not even sent (OpenFlow 1.3).
	FloodMeters bool `yaml:"flood_meters"`
	// ProbeRate is how many LLDP frames a second every port may send.
	ProbeRate int `yaml:"probe_rate"`
	// RealtimeFirst has echoes, port status, answers about roles and probes
	// dealt with before packet-ins that came earlier, and echoes sent before
	// what waits to be sent. False is all in the order in which it came.
	RealtimeFirst bool `yaml:"realtime_first"`
}

func defaults() *Config {
	return &Config{
		Listen:               []string{"tcp:127.0.0.1:6653"},
		LeaseTime:            600 * time.Millisecond,
		LeaseRenew:           150 * time.Millisecond,
		HandshakeTimeout:     10 * time.Second,
		EchoInterval:         5 * time.Second,
		DeadAfter:            15 * time.Second,
		WriteTimeout:         5 * time.Second,
		ConfirmTimeout:       5 * time.Second,
		QueueBytes:           4 << 20,
		SessionBytes:         256 << 20,
		TotalBytes:           1 << 30,
		NewSessionsPerSecond: 1000,
		MaxSessions:          10_000,
		PortEventsPerSecond:  20,
		FloodRate:            5000,
		FloodFactor:          4,
		FloodFloor:           1000,
		FloodMeters:          true,
		ProbeRate:            1000,
		RealtimeFirst:        true,
	}
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	if err := c.checkListen(); err != nil {
		return err
	}
	if _, err := c.partition(); err != nil {
		return err
	}
	if err := c.checkLease(); err != nil {
		return err
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"handshake_timeout", c.HandshakeTimeout}, {"echo_interval", c.EchoInterval}, {"dead_after", c.DeadAfter},
		{"write_timeout", c.WriteTimeout}, {"confirm_timeout", c.ConfirmTimeout},
	} {
		if d.value < 10*time.Millisecond {
			return fmt.Errorf("%s: %v: want at least 10ms", d.key, d.value)
		}
	}
	if c.DeadAfter <= c.EchoInterval {
		return fmt.Errorf("dead_after: %v: want more than echo_interval (%v)", c.DeadAfter, c.EchoInterval)
	}
	for _, n := range []struct {
		key        string
		value, min int
	}{
		{"queue_bytes", c.QueueBytes, 1 << 17}, {"session_bytes", c.SessionBytes, 4 << 20}, {"total_bytes", c.TotalBytes, c.SessionBytes},
		{"new_sessions_per_second", c.NewSessionsPerSecond, 1},
		{"max_sessions", c.MaxSessions, 1}, {"port_events_per_second", c.PortEventsPerSecond, 1},
		{"flood_factor", c.FloodFactor, 2}, {"flood_floor", c.FloodFloor, 10}, {"probe_rate", c.ProbeRate, 10},
	} {
		if n.value < n.min {
			return fmt.Errorf("%s: %d: want at least %d", n.key, n.value, n.min)
		}
	}
	if c.FloodRate != 0 && c.FloodRate < c.FloodFloor {
		return fmt.Errorf("flood_rate: %d: want 0, for no limits, or at least flood_floor (%d)", c.FloodRate, c.FloodFloor)
	}
	return nil
}

// session is the part that concerns one session.
func (c *Config) session() *session.Config {
	return &session.Config{
		HandshakeTimeout: c.HandshakeTimeout, ConfirmTimeout: c.ConfirmTimeout,
		QueueBytes: c.QueueBytes, PortEventsPerSecond: c.PortEventsPerSecond,
		Flood:       admission.FloodRule{Rate: float64(c.FloodRate), Factor: float64(c.FloodFactor), Floor: float64(c.FloodFloor), Probes: float64(c.ProbeRate)},
		FloodMeters: c.FloodMeters, RealtimeFirst: c.RealtimeFirst,
	}
}

// standbysMost bounds the processes that stand by for one.
const standbysMost = 4

// checkLease says what is wrong with how the mastership is held.
func (c *Config) checkLease() error {
	switch {
	case c.LeaseRenew < 10*time.Millisecond:
		return fmt.Errorf("lease_renew: %v: want at least 10ms", c.LeaseRenew)
	case c.LeaseTime < 3*c.LeaseRenew:
		return fmt.Errorf("lease_time: %v: want at least three times lease_renew (%v), so that one renewal that is late does no harm", c.LeaseTime, c.LeaseRenew)
	case c.LeaseTime > mastership.LeaseMost:
		return fmt.Errorf("lease_time: %v: want at most 1m: until it has ended, nobody takes over from a master that has died", c.LeaseTime)
	case c.Standbys < 0 || c.Standbys > standbysMost:
		return fmt.Errorf("standbys: %d: want 0 to %d", c.Standbys, standbysMost)
	case c.Standby < 0 || c.Standby > standbysMost:
		return fmt.Errorf("standby: %d: want 0 to %d", c.Standby, standbysMost)
	}
	return nil
}

// terms are the times of the lease.
func (c *Config) terms() mastership.Terms {
	t := mastership.Terms{Lasts: c.LeaseTime, Place: c.Standby}
	if c.Standbys > 0 {
		t.Renew = c.LeaseRenew
	}
	return t
}

// listenAt returns where switches connect to this process.
func (c *Config) listenAt() []string {
	if n := c.Standby; n > 0 && n <= len(c.StandbyListen) {
		return c.StandbyListen[n-1 : n]
	}
	return c.Listen
}

// partition parses the configured lists of switches.
func (c *Config) partition() (admission.Partition, error) {
	return admission.ParsePartition(c.Switches, c.Elsewhere)
}
