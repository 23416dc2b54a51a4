package scp

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/netspace"
	"github.com/weft-sdn/weft/sbi"
)

// Config is the configuration of scp.
type Config struct {
	// NRF is where the NRF of the core is reached: http://ADDRESS:PORT or, by TLS,
	// https://ADDRESS:PORT. Without it, nothing is intercepted.
	NRF string `yaml:"nrf"`
	// NRFName is the name in the NRF's certificate, where it is not its address.
	NRFName string `yaml:"nrf_name"`
	// Listen is ADDRESS:PORT at which the front takes what consumers send to the
	// NRF: an address of a host of the network. Without it, the front has no host:
	// what is for the NRF comes to the controller packet by packet.
	Listen string `yaml:"listen" start:"file"`
	// Address is that from which a front without a host reaches the NRF: one of the
	// NRF's subnet that no host has. Empty is the last of Vips.
	Address string `yaml:"address"`
	// PacketRate is how many packets a second a front without a host takes from one
	// port of a switch.
	PacketRate int `yaml:"packet_rate"`
	// Namespace is the network namespace, as ip netns list shows it, in which Listen
	// is: that of a lab's host. Empty is that of the controller.
	Namespace string `yaml:"namespace" start:"true"`
	// Certificate and Key are files by which the front answers in place of an NRF
	// that is reached by TLS, and by which it is a client of that; issued by the
	// operator, for the NRF's name, and for the front's address, at which the NRF notifies
	// it. Authority is who signs those of the NRF and of consumers.
	Certificate string `yaml:"certificate" start:"true"`
	Key         string `yaml:"key" start:"true"`
	Authority   string `yaml:"authority" start:"true"`
	// Mutual has consumers and the NRF need a certificate of Authority to connect to the
	// front; else those that have one are checked.
	Mutual bool `yaml:"mutual" start:"true"`
	// Vips are prefixes of the consumers' subnet, one for a family, from which
	// producers' common addresses are taken. No host may have one of them.
	Vips []netip.Prefix `yaml:"vips"`
	// VLAN is that of the core; 0 is untagged.
	VLAN int `yaml:"vlan"`
	// Strict has consumers registered before they may connect to anybody; else
	// those that are not may use producers that are not restricted.
	Strict bool `yaml:"strict"`
	// Registrars are prefixes of hosts that may register for others, and ask for
	// them, such as a management system, or an SCP that is not registered itself.
	Registrars []netip.Prefix `yaml:"registrars"`
	// Names are the addresses of names that profiles have for addresses, such as
	// udm.example.org: [10.0.4.1]. Producers that have only names which are not in it
	// are found as without scp.
	Names map[string][]netip.Addr `yaml:"names"`
	// Resolver is ADDRESS:PORT of a DNS server that is asked for names which Names
	// lacks, from where the controller runs. Empty: none is.
	Resolver string `yaml:"resolver"`
	// Notifications has the front stand between the NRF and those who subscribe to
	// the status of instances there, or list them, so that they learn of end points,
	// too.
	Notifications bool `yaml:"notifications"`
	// Overload is the load, in percent, of all producers of a type from which on
	// new connections are refused, until it is a tenth less; 0 is never.
	Overload int `yaml:"overload"`
	// Errors is the share, in percent, of a producer's answers to requests that the
	// front passes on which say that it is overloaded, or are late, from which on it gets
	// fewer new requests and consumers; 0 is never.
	Errors int `yaml:"errors"`
	// Margin is how long a heartbeat may be late before its instance gets no new
	// connections.
	Margin time.Duration `yaml:"margin"`
	// Validity bounds, from above, for how long a discovery is answered from what
	// is known; the NRF says how long within it.
	Validity time.Duration `yaml:"validity"`
	// NRFTimeout is how long the NRF has for an answer.
	NRFTimeout time.Duration `yaml:"nrf_timeout"`
	// Instances is how many instances may be known, Endpoints how many common
	// addresses there may be, and Connections how many clients the front has.
	Instances   int `yaml:"instances"`
	Endpoints   int `yaml:"endpoints"`
	Connections int `yaml:"connections"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{
		Mutual: true, Notifications: true, Overload: 90, Errors: 20, Margin: 5 * time.Second, Validity: time.Minute, NRFTimeout: 2 * time.Second,
		Instances: 10_000, Endpoints: 256, Connections: 4096, PacketRate: 20_000,
	}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	if err := netspace.Check(c.Namespace); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	nrf, tls, err := c.nrf()
	if err != nil {
		return err
	}
	listen, err := c.listen()
	if err != nil {
		return err
	}
	switch {
	case listen.IsValid() && !nrf.IsValid():
		return fmt.Errorf("listen: %s: it is for what consumers send to the NRF; say by nrf where that is, such as http://10.0.0.1:7777", c.Listen)
	case listen.IsValid() && listen.Addr().Is4() != nrf.Addr().Is4():
		return fmt.Errorf("listen: %s: want an address of the family of the NRF, %v", c.Listen, nrf)
	case listen.IsValid() && listen.Addr() == nrf.Addr():
		return fmt.Errorf("listen: %s: is the NRF's own address; the front needs a host of its own", c.Listen)
	case tls && c.Certificate == "":
		return fmt.Errorf("nrf: %s: what goes by TLS can be answered only by who has a certificate for the NRF's name; set scp.certificate and scp.key to one that the operator has issued, or leave out scp.nrf", c.NRF)
	case nrf.IsValid() && !listen.IsValid() && c.Address == "" && !c.own().IsValid():
		return fmt.Errorf("nrf: %s: the front has no host (scp.listen), so it needs an address that no host has to reach the NRF from; set scp.address, or scp.vips with a prefix of the NRF's family", c.NRF)
	case (c.Certificate == "") != (c.Key == ""):
		return fmt.Errorf("certificate: %q with key: %q: want both or none", c.Certificate, c.Key)
	case c.Certificate != "" && !tls:
		return fmt.Errorf("certificate: %s: the NRF %s is not reached by TLS", c.Certificate, c.NRF)
	case c.VLAN < 0 || c.VLAN > 4094:
		return fmt.Errorf("vlan: %d: want 0 (untagged) to 4094", c.VLAN)
	case c.Overload < 0 || c.Overload > 100:
		return fmt.Errorf("overload: %d: want 1 to 100 percent, or 0", c.Overload)
	case c.Errors < 0 || c.Errors > 100:
		return fmt.Errorf("errors: %d: want 1 to 100 percent, or 0", c.Errors)
	}
	if err := c.validateAddress(nrf, listen); err != nil {
		return err
	}
	return c.validateRest()
}

// validateAddress says what is wrong with the address of a front without a host.
func (c *Config) validateAddress(nrf, listen netip.AddrPort) error {
	if c.Address == "" {
		return nil
	}
	a, err := netip.ParseAddr(c.Address)
	switch {
	case !nrf.IsValid():
		return fmt.Errorf("address: %s: it is from where the front reaches the NRF; say by nrf where that is, such as http://10.0.0.1:7777", c.Address)
	case listen.IsValid():
		return fmt.Errorf("address: %s: the front reaches the NRF from its host, %s; leave out scp.address or scp.listen", c.Address, c.Listen)
	case err != nil || a.Is4() != nrf.Addr().Is4() || !hostAddress(netip.AddrPortFrom(a, 1)) || a.IsLoopback() || a.Is4In6():
		return fmt.Errorf("address: %.200q: want the address of a single host, of the family of the NRF, %v", c.Address, nrf)
	case a == nrf.Addr():
		return fmt.Errorf("address: %s: is the NRF's own; want one that no host has", c.Address)
	}
	return nil
}

func (c *Config) validateRest() error {
	families := map[bool]bool{}
	for _, p := range c.Vips {
		switch {
		case !p.IsValid() || p.Masked() != p:
			return fmt.Errorf("vips: %v: want a prefix such as 10.0.0.192/26", p)
		case p.IsSingleIP() || families[p.Addr().Is4()]:
			return fmt.Errorf("vips: %v: want one prefix of several addresses for IPv4, and one for IPv6", p)
		}
		families[p.Addr().Is4()] = true
	}
	for _, p := range c.Registrars {
		if !p.IsValid() {
			return fmt.Errorf("registrars: %v: want prefixes such as 10.0.0.7/32", p)
		}
	}
	if _, err := c.resolver(); err != nil {
		return err
	}
	for name, at := range c.Names {
		if name == "" || len(name) > 253 || len(at) == 0 || slices.ContainsFunc(at, func(a netip.Addr) bool { return !hostAddress(netip.AddrPortFrom(a, 1)) }) {
			return fmt.Errorf("names: %.200q: %v: want a name and the addresses of a host", name, at)
		}
	}
	for _, d := range []struct {
		key      string
		is       time.Duration
		from, to time.Duration
	}{
		{"margin", c.Margin, 100 * time.Millisecond, time.Hour}, {"validity", c.Validity, time.Second, 24 * time.Hour},
		{"nrf_timeout", c.NRFTimeout, 100 * time.Millisecond, time.Minute},
	} {
		if d.is < d.from || d.is > d.to {
			return fmt.Errorf("%s: %v: want %v to %v", d.key, d.is, d.from, d.to)
		}
	}
	for _, n := range []struct {
		key     string
		is, max int
	}{{"instances", c.Instances, 100_000}, {"endpoints", c.Endpoints, 10_000}, {"connections", c.Connections, 100_000}, {"packet_rate", c.PacketRate, 10_000_000}} {
		if n.is < 1 || n.is > n.max {
			return fmt.Errorf("%s: %d: want 1 to %d", n.key, n.is, n.max)
		}
	}
	return nil
}

// nrf returns the address of the NRF, invalid if there is none, and whether it is
// reached by TLS.
func (c *Config) nrf() (at netip.AddrPort, tls bool, err error) {
	if c.NRF == "" {
		return at, false, nil
	}
	bad := func() (netip.AddrPort, bool, error) {
		return netip.AddrPort{}, false, fmt.Errorf("nrf: %.200q: want http://ADDRESS:PORT or https://ADDRESS:PORT", c.NRF)
	}
	u, err := url.Parse(c.NRF)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Path != "" && u.Path != "/" {
		return bad()
	}
	if at, err = addressOf(u); err != nil || !hostAddress(at) {
		return bad()
	}
	return at, u.Scheme == "https", nil
}

// listen returns where the front listens, invalid if it does not.
func (c *Config) listen() (at netip.AddrPort, err error) {
	if c.Listen == "" {
		return at, nil
	}
	if at, err = netip.ParseAddrPort(c.Listen); err != nil || !hostAddress(at) {
		return netip.AddrPort{}, fmt.Errorf("listen: %.200q: want the address of a host and a port, such as 10.0.0.2:7777", c.Listen)
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}

// The kinds of a front.
const (
	frontHost    = "host"      // in a host of the network
	frontPackets = "packet-in" // in the controller
)

// front returns the kind of the front, empty if there is none.
func (c *Config) front() string {
	switch {
	case c.NRF == "":
		return ""
	case c.Listen != "":
		return frontHost
	}
	return frontPackets
}

// own returns the address of a front without a host; invalid if there is none.
func (c *Config) own() netip.Addr {
	nrf, _, err := c.nrf()
	if err != nil || c.front() != frontPackets {
		return netip.Addr{}
	}
	if c.Address != "" {
		a, _ := netip.ParseAddr(c.Address) // Validate has seen it
		return a
	}
	for _, v := range c.Vips {
		if !v.IsValid() || v.Addr().Is4() != nrf.Addr().Is4() || v.IsSingleIP() {
			continue
		}
		last := v.Masked().Addr().AsSlice()
		for i := range last {
			if ones := v.Bits() - 8*i; ones < 8 {
				last[i] |= 0xff >> max(ones, 0)
			}
		}
		a, _ := netip.AddrFromSlice(last)
		if a = a.Prev(); a == nrf.Addr() { // the last is IPv4's broadcast
			a = a.Prev()
		}
		return a
	}
	return netip.Addr{}
}

// self returns where the front is reached by the NRF.
func (c *Config) self() netip.AddrPort {
	nrf, _, _ := c.nrf() // Validate has seen both
	listen, _ := c.listen()
	if listen.IsValid() {
		return listen
	}
	return netip.AddrPortFrom(c.own(), nrf.Port())
}

// reserved returns what reports whether an address cannot be that of a member of a
// VIP: it is of a VIP itself, or the front's.
func (c *Config) reserved() func(netip.Addr) bool {
	nrf, _, _ := c.nrf() // Validate has seen both
	listen, _ := c.listen()
	own := c.own()
	return func(a netip.Addr) bool {
		return a == nrf.Addr() || a == listen.Addr() || a == own || slices.ContainsFunc(c.Vips, func(v netip.Prefix) bool { return v.Contains(a) })
	}
}

// resolver returns the DNS server, invalid if there is none.
func (c *Config) resolver() (at netip.AddrPort, err error) {
	if c.Resolver == "" {
		return at, nil
	}
	if at, err = netip.ParseAddrPort(c.Resolver); err != nil || !hostAddress(at) {
		return netip.AddrPort{}, fmt.Errorf("resolver: %.200q: want the address of a DNS server and a port, such as 10.0.0.53:53", c.Resolver)
	}
	return at, nil
}

// names returns the table of names as profiles are read with it.
func (c *Config) names() sbi.Names {
	table := sbi.Names{}
	for name, at := range c.Names {
		table[strings.ToLower(strings.TrimSuffix(name, "."))] = at
	}
	return table
}

// ours reports whether an address is nobody's but the proxy's.
func (c *Config) ours(a netip.Addr) bool {
	listen, _ := c.listen() // Validate has seen it
	return a == listen.Addr() || slices.ContainsFunc(c.Vips, func(v netip.Prefix) bool { return v.Contains(a) })
}

// exempt returns the prefixes of those who may connect to any producer: the registrars,
// and the NRF, which notifies functions.
func (c *Config) exempt() []netip.Prefix {
	all := slices.Clone(c.Registrars)
	if nrf, _, _ := c.nrf(); nrf.IsValid() { // Validate has seen it
		all = append(all, netip.PrefixFrom(nrf.Addr(), nrf.Addr().BitLen()))
	}
	return all
}

// addressOf returns the address and port of a URI.
func addressOf(u *url.URL) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := sbi.PortOf(u)
	return netip.AddrPortFrom(a.Unmap(), port), err
}

// hostAddress reports whether it is the address of a single host, and a port.
func hostAddress(at netip.AddrPort) bool {
	a := at.Addr()
	return a.IsValid() && at.Port() != 0 && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
}
