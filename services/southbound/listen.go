package southbound

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/keypair"
	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/secure"
)

// listener is an address where switches connect.
type listener struct {
	net.Listener
	secrets *secure.Secrets // nil: without TLS
}

// listenLocal opens an address of this machine. It takes over a Unix socket on
// which nobody listens any more.
func listenLocal(network, address string) (net.Listener, error) {
	if network == "unix" {
		return localsocket.Listen(address)
	}
	return net.Listen(network, address)
}

// listen opens the addresses.
func listen(addresses []string, s *secure.Secrets, open func(network, address string) (net.Listener, error)) (listeners []listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
		}
	}()
	for _, a := range addresses {
		network, address, err := splitListen(a)
		if err != nil {
			return listeners, err
		}
		own := listener{}
		if network == "tls" {
			network, own.secrets = "tcp", s
		}
		if own.Listener, err = open(network, address); err != nil {
			hint := "choose another address with --listen, or the key southbound.listen"
			if errors.Is(err, syscall.EADDRINUSE) {
				hint = "is another controller running? " + hint
			}
			return listeners, fmt.Errorf("listen for switches: %w; %s", err, hint)
		}
		listeners = append(listeners, own)
	}
	return listeners, nil
}

// splitListen splits an address into the network, which may be tls, and the
// address of package net.
func splitListen(s string) (network, address string, err error) {
	network, address, ok := strings.Cut(s, ":")
	switch {
	case ok && network == "unix" && address != "":
		return network, address, nil
	case ok && (network == "tcp" || network == "tls"):
		if _, _, err := net.SplitHostPort(address); err == nil {
			return network, address, nil
		}
	}
	return "", "", fmt.Errorf("address %q: want tls:HOST:PORT, tcp:HOST:PORT or unix:PATH", s)
}

// checkListen returns an error if the settings for listening are wrong.
func (c *Config) checkListen() error {
	if len(c.Listen) == 0 {
		return fmt.Errorf("listen: want at least one address, such as tcp:127.0.0.1:6653")
	}
	for i, l := range slices.Concat(c.Listen, c.StandbyListen) {
		key := "listen"
		if i >= len(c.Listen) {
			key = "standby_listen"
		}
		network, address, err := splitListen(l)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if host, _, _ := net.SplitHostPort(address); network == "tcp" && !c.Plain && !localsocket.Loopback(host) {
			return fmt.Errorf("%s: %s is not a loopback address, and without TLS whoever reaches it can pose as a switch or read along: use tls:%s with certificate, key and authority (weft certs controller), or set plain: true if the network is yours alone", key, l, address)
		}
	}
	if _, err := c.certified(); err != nil {
		return err
	}
	given := 0
	for _, path := range []string{c.Certificate, c.Key, c.Authority} {
		if path != "" {
			given++
		}
	}
	switch {
	case c.secure() && given < 3:
		return fmt.Errorf("listen: tls: wants certificate, key and authority, all three: files made by weft certs controller")
	case !c.secure() && given > 0:
		return fmt.Errorf("certificate: there is no tls:HOST:PORT in listen (%s) to use it", strings.Join(c.Listen, ", "))
	}
	return nil
}

// secure reports whether an address is one with TLS.
func (c *Config) secure() bool {
	return slices.ContainsFunc(slices.Concat(c.Listen, c.StandbyListen), func(l string) bool { return strings.HasPrefix(l, "tls:") })
}

// certified returns the configured switches of each certificate.
func (c *Config) certified() (map[string]admission.Switches, error) {
	names := map[string]admission.Switches{}
	for _, name := range slices.Sorted(maps.Keys(c.Identities)) {
		list, err := admission.ParseSwitches(c.Identities[name])
		switch {
		case err != nil:
			return nil, fmt.Errorf("identities: %s: %w", name, err)
		case list.Rest:
			return nil, fmt.Errorf("identities: %s: %s is not possible: a certificate is for switches by their datapath ids", name, flow.Rest)
		case name == "" || len(list.Ranges) == 0:
			return nil, fmt.Errorf("identities: %q: %q: want the common name of a certificate, or sha256: and its digest, and the switches that it is for", name, c.Identities[name])
		}
		names[digestForm(name)] = list
	}
	return names, nil
}

// digestForm converts a digest to the form used for comparison.
func digestForm(name string) string {
	digits, ok := strings.CutPrefix(name, secure.DigestPrefix)
	if !ok {
		return name
	}
	return secure.DigestPrefix + strings.ToLower(strings.ReplaceAll(digits, ":", ""))
}

// openSecrets reads the files of TLS; nil if no address needs them.
func (c *Config) openSecrets() (*secure.Secrets, *keypair.Pair, error) {
	if !c.secure() {
		return nil, nil, nil
	}
	pair, err := keypair.Open(keypair.Files{Certificate: c.Certificate, Key: c.Key, Authority: c.Authority}, time.Now)
	if err != nil {
		return nil, nil, fmt.Errorf("southbound: %w", err)
	}
	names, err := c.certified()
	if err != nil {
		return nil, nil, err
	}
	return secure.NewSecrets(pair.Server(), names), pair, nil
}
