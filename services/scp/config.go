package scp

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/internal/netspace"
)

// Config is the configuration of scp.
type Config struct {
	// NRF is where the NRF of the core is reached: http://ADDRESS:PORT or, by TLS,
	// https://ADDRESS:PORT. Without it, nothing is intercepted.
	NRF string `yaml:"nrf"`
	// NRFName is the name in the NRF's certificate, where it is not its address.
	NRFName string `yaml:"nrf_name"`
	// Listen is ADDRESS:PORT at which the front takes what consumers send to the
	// NRF: an address of a host of the network. Without it, nothing is intercepted.
	Listen string `yaml:"listen" start:"file"`
	// Namespace is the network namespace, as ip netns list shows it, in which Listen
	// is: that of a lab's host. Empty is that of the controller.
	Namespace string `yaml:"namespace" start:"true"`
	// Certificate and Key are files by which the front answers in place of an NRF
	// that is reached by TLS, and by which it is a client of that; issued by the
	// operator, for the NRF's name. Authority is who signs those of the NRF and of
	// consumers, which then need one.
	Certificate string `yaml:"certificate" start:"true"`
	Key         string `yaml:"key" start:"true"`
	Authority   string `yaml:"authority" start:"true"`
	// Vips are prefixes of the consumers' subnet, one for a family, from which
	// producers' common addresses are taken. No host may have one of them.
	Vips []netip.Prefix `yaml:"vips"`
	// VLAN is that of the core; 0 is untagged.
	VLAN int `yaml:"vlan"`
	// Strict has consumers registered before they may connect to anybody; else
	// those that are not may use producers that are not restricted.
	Strict bool `yaml:"strict"`
	// Registrars are prefixes of hosts that may register profiles with addresses
	// of others, such as a management system.
	Registrars []netip.Prefix `yaml:"registrars"`
	// Overload is the load, in percent, of all producers of a type from which on
	// new connections are refused, until it is a tenth less; 0 is never.
	Overload int `yaml:"overload"`
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
		Overload: 90, Margin: 5 * time.Second, Validity: time.Minute, NRFTimeout: 2 * time.Second,
		Instances: 10_000, Endpoints: 256, Connections: 4096,
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
	case tls && listen.IsValid() && c.Certificate == "":
		return fmt.Errorf("nrf: %s: what goes by TLS can be answered only by who has a certificate for the NRF's name; set scp.certificate and scp.key to one that the operator has issued, or leave out scp.listen", c.NRF)
	case (c.Certificate == "") != (c.Key == ""):
		return fmt.Errorf("certificate: %q with key: %q: want both or none", c.Certificate, c.Key)
	case c.Certificate != "" && !tls:
		return fmt.Errorf("certificate: %s: the NRF %s is not reached by TLS", c.Certificate, c.NRF)
	case c.VLAN < 0 || c.VLAN > 4094:
		return fmt.Errorf("vlan: %d: want 0 (untagged) to 4094", c.VLAN)
	case c.Overload < 0 || c.Overload > 100:
		return fmt.Errorf("overload: %d: want 1 to 100 percent, or 0", c.Overload)
	}
	return c.validateRest()
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
	}{{"instances", c.Instances, 100_000}, {"endpoints", c.Endpoints, 10_000}, {"connections", c.Connections, 100_000}} {
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
	tls = u.Scheme == "https"
	a, err := netip.ParseAddr(u.Hostname())
	port := map[bool]uint64{false: 80, true: 443}[tls]
	if u.Port() != "" && err == nil {
		port, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if at = netip.AddrPortFrom(a.Unmap(), uint16(port)); err != nil || !hostAddress(at) {
		return bad()
	}
	return at, tls, nil
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

// reserved returns what reports whether an address cannot be that of a member of a
// VIP: it is of a VIP itself, or the front's.
func (c *Config) reserved() func(netip.Addr) bool {
	nrf, _, _ := c.nrf() // Validate has seen both
	listen, _ := c.listen()
	return func(a netip.Addr) bool {
		return a == nrf.Addr() || a == listen.Addr() || slices.ContainsFunc(c.Vips, func(v netip.Prefix) bool { return v.Contains(a) })
	}
}

// hostAddress reports whether it is the address of a single host, and a port.
func hostAddress(at netip.AddrPort) bool {
	a := at.Addr()
	return a.IsValid() && at.Port() != 0 && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast()
}
