package deploy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/transport/socket"
)

// Startable reports which processes of a plan could not start on a machine,
// each on a line of its own: a process listens before it does anything else.
// secure reports whether a process has a certificate, and what is wrong with
// it. Processes of other machines are not checked.
func Startable(c *members.Current, machine string, secure func(process string) (bool, error)) error {
	var errs []error
	for _, i := range c.InForce().Instances() {
		w := c.InForce().Worker(i.Worker)
		if w.Machine != "" && w.Machine != machine {
			continue
		}
		process := c.ProcessOf(i.Name)
		tls, err := secure(process)
		if err != nil {
			errs = append(errs, fmt.Errorf("worker %s could not start: %w", process, err))
			continue
		}
		if err = socket.Admit(w.Listen, tls); err == nil {
			err = reachable(w.Listen)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("worker %s could not start: workers.%s.listen: %s: %w", process, w.Name, w.Listen, err))
		}
	}
	return errors.Join(errs...)
}

// reachable returns an error if this machine does not have the host of an
// address.
func reachable(address string) error {
	network, where, err := socket.Split(address)
	if err != nil || network != "tcp" {
		return err
	}
	host, _, err := net.SplitHostPort(where)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	return l.Close()
}

// newErrors returns what err reports and before does not, by lines.
func newErrors(before, err error) error {
	if before == nil || err == nil {
		return err
	}
	known := strings.Split(before.Error(), "\n")
	var errs []error
	for _, line := range strings.Split(err.Error(), "\n") {
		if !slices.Contains(known, line) {
			errs = append(errs, errors.New(line))
		}
	}
	return errors.Join(errs...)
}
