package nodes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
)

const sslPrefix = "ssl:"

// CheckTLS says what is missing for TLS, and makes the files' paths absolute.
func (s Switches) CheckTLS() error {
	if s.TLS == nil {
		if s.Topology.Secure() {
			return errors.New("a controller is ssl:HOST:PORT, so the switches need a certificate, a key and an authority (weft certs switch, weft lab up --certs)")
		}
		return nil
	}
	files := *s.TLS // the caller's stays as it is
	s.TLS = &files
	for _, path := range []*string{&files.Certificate, &files.Key, &files.Authority} {
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("TLS of the switches: %w", err)
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("TLS of the switches: %w", err)
		}
		*path = full
	}
	return nil
}

// target is where a switch connects to for a controller: Open vSwitch speaks
// TLS over TCP only, so there the relay listens on a port of the switches' own
// namespace.
func (s Switches) target(controller int, socket string) string {
	if strings.HasPrefix(s.Topology.Controllers[controller], sslPrefix) {
		return sslPrefix + relayAddress(controller)
	}
	return "unix:" + socket
}

func relayAddress(controller int) string { return fmt.Sprintf("127.0.0.1:%d", 6653+controller) }

// listenFor listens for the switches that connect to a controller.
func (s Switches) listenFor(controller int, socket string) (l net.Listener, err error) {
	if !strings.HasPrefix(s.Topology.Controllers[controller], sslPrefix) {
		return net.Listen("unix", socket)
	}
	err = machine.InNetns(machine.SwitchNetns(s.Name), func() error {
		l, err = net.Listen("tcp", relayAddress(controller))
		return err
	})
	return l, err
}

// setSSL is the arguments of ovs-vsctl that give Open vSwitch its certificate.
func setSSL(t *layout.TLS) []string {
	return []string{
		"--", "--id=@ssl", "create", "SSL",
		fmt.Sprintf("private_key=%q", t.Key), fmt.Sprintf("certificate=%q", t.Certificate), fmt.Sprintf("ca_cert=%q", t.Authority),
		"--", "set", "Open_vSwitch", ".", "ssl=@ssl",
	}
}
