package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// showFirewall denies what one host sends to another, and allows it again.
func (d features) showFirewall(ctx context.Context) (string, error) {
	h, err := d.hosts(2)
	if err != nil {
		return "", err
	}
	a, b := h[0], h[1]
	const n = 10
	before, err := d.answered(ctx, a.Name, b.Name, n)
	if err != nil {
		return "", err
	}
	if _, err = d.weft(ctx, "firewall", "add", "--id", "demo", "--deny", "--match", fmt.Sprintf("ipv4_src=%s,ipv4_dst=%s", a.IPv4.Addr(), b.IPv4.Addr())); err != nil {
		return "", err
	}
	defer d.undo(ctx, "firewall", "delete", "demo")
	// The rule is in force when the command ends; Open vSwitch's datapath follows
	// within half a second.
	if err := until(ctx, 2*time.Second, "denied", func() (bool, error) {
		got, err := d.answered(ctx, a.Name, b.Name, 1)
		return got == 0, err
	}); err != nil {
		return "", err
	}
	denied, err := d.answered(ctx, a.Name, b.Name, n)
	if err != nil {
		return "", err
	}
	if _, err := d.weft(ctx, "firewall", "delete", "demo"); err != nil {
		return "", err
	}
	if err := until(ctx, 3*time.Second, "allowed again", func() (bool, error) {
		got, err := d.answered(ctx, a.Name, b.Name, 1)
		return got == 1, err
	}); err != nil {
		return "", err
	}
	after, err := d.answered(ctx, a.Name, b.Name, n)
	figure := fmt.Sprintf("%s to %s: %d of %d answered, denied %d, allowed again %d", a.Name, b.Name, before, n, denied, after)
	if err == nil && (before < n || denied > 0 || after < n) {
		err = errors.New("the rule did not decide")
	}
	return figure, err
}

// showBalancer has three hosts serve a virtual IP, and drains one of them.
func (d features) showBalancer(ctx context.Context) (string, error) {
	h, err := d.hosts(5)
	if err != nil {
		return "", err
	}
	client, servers := h[0], h[2:5]
	const vip = "10.0.0.100"
	args := []string{"balancer", "add", "demo", "--address", vip, "--port", "80", "--check", "tcp", "--check-interval", "300", "--rise", "1"}
	for _, s := range servers {
		end, err := d.serve(ctx, s.Name, s.Name)
		if err != nil {
			return "", err
		}
		defer end()
		args = append(args, "--member", s.IPv4.Addr().String()+":8080")
	}
	if _, err := d.weft(ctx, args...); err != nil {
		return "", err
	}
	defer d.undo(ctx, "balancer", "delete", "demo")
	if err := until(ctx, 10*time.Second, "all members up", func() (up bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.ListVips(n.Ctx, &api.ListVipsRequest{Name: "demo"})
			up = len(m.GetVips()) == 1 && count(m.Vips[0].Pool, func(p *api.PoolMember) bool { return p.Health == "up" }) == len(servers)
			return err
		})
		return up, err
	}); err != nil {
		return "", err
	}
	const n = 60
	all, err := d.fetch(ctx, client.Name, vip, n)
	if err != nil {
		return "", err
	}
	gone := servers[0]
	if _, err := d.weft(ctx, "balancer", "drain", "demo", gone.IPv4.Addr().String()+":8080"); err != nil {
		return "", err
	}
	rest, err := d.fetch(ctx, client.Name, vip, n)
	figure := fmt.Sprintf("%d connections to %s: %s; %s drained: %s", n, vip, shares(all), gone.Name, shares(rest))
	switch {
	case err != nil:
		return figure, err
	case rest[gone.Name] > 0:
		return figure, errors.New("the drained member has got connections")
	}
	for _, s := range servers {
		if all[s.Name] < n/len(servers)-5 {
			return figure, errors.New(s.Name + " has not got its share")
		}
	}
	return figure, nil
}

// serve starts a web server on a host, at port 8080; without a name it says
// whoever asks.
func (d features) serve(ctx context.Context, host string, name ...string) (end func(), err error) {
	exe, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	c, err := d.Lab.Start(ctx, host, append([]string{exe, "demo", "serve", ":8080"}, name...)...)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}, nil
}

// fetch fetches a page n times from a host and returns how often it said what.
func (d features) fetch(ctx context.Context, from, address string, n int) (map[string]int, error) {
	exe, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	out, err := d.Lab.Exec(ctx, from, exe, "demo", "fetch", "http://"+address+"/", strconv.Itoa(n))
	got := map[string]int{}
	if err == nil {
		err = json.Unmarshal([]byte(out), &got)
	}
	return got, err
}

// shares writes how many each has got.
func shares(got map[string]int) string {
	var parts []string
	for name, n := range got {
		parts = append(parts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// showQoS limits what a host sends.
func (d features) showQoS(ctx context.Context) (string, error) {
	h, err := d.hosts(2)
	if err != nil {
		return "", err
	}
	measure := func() (float64, error) {
		r, err := d.Lab.Iperf(ctx, h[0].Name, h[1].Name, traffic.IperfOptions{Duration: 3 * time.Second})
		return r.Mbit, err
	}
	before, err := measure()
	if err != nil {
		return "", err
	}
	const limit = 10
	if _, err := d.weft(ctx, "qos", "add", "demo", "--host", h[0].IPv4.Addr().String(), "--rate", strconv.Itoa(limit*1000)); err != nil {
		return "", err
	}
	defer d.undo(ctx, "qos", "delete", "demo")
	if err := until(ctx, 5*time.Second, "enforced", func() (enforced bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.GetStatus(n.Ctx, &api.QosGetStatusRequest{Policy: "demo"})
			enforced = len(m.GetPolicies()) == 1 && m.Policies[0].State == "enforced"
			return err
		})
		return enforced, err
	}); err != nil {
		return "", err
	}
	limited, err := measure()
	if err != nil {
		return "", err
	}
	if _, err := d.weft(ctx, "qos", "delete", "demo"); err != nil {
		return "", err
	}
	after, err := measure()
	figure := fmt.Sprintf("%s to %s: %.0f Mbit/s, limited %.1f, then %.0f", h[0].Name, h[1].Name, before, limited, after)
	if err == nil && (limited > 1.5*limit || limited < limit/10 || before < 3*limited || after < 3*limited) {
		err = errors.New("the limit was not kept, or did not end")
	}
	return figure, err
}

// shortDPID is a DPID as one types it.
func shortDPID(dpid string) string { return strings.TrimLeft(dpid, "0") }

// showTenants gives two pairs of hosts the same addresses, in a virtual network
// each.
func (d features) showTenants(ctx context.Context) (figure string, err error) {
	h, err := d.hosts(5)
	if err != nil {
		return "", err
	}
	tenants := []struct {
		name string
		a, b topology.Host
	}{{"red", h[0], h[1]}, {"blue", h[2], h[3]}}
	for _, t := range tenants {
		if _, err := d.weft(ctx, "tenants", "add", t.name); err != nil {
			return "", err
		}
		args := []string{"tenants", "network", t.name, "office"}
		for i, g := range []topology.Host{t.a, t.b} {
			dpid, err := d.Lab.SwitchDPID(g.Switch)
			if err != nil {
				return "", err
			}
			args = append(args, "--port", fmt.Sprintf("%s/%d", shortDPID(dpid.String()), g.Port))
			address := fmt.Sprintf("10.9.0.%d/24", i+1)
			if _, err := d.Lab.Exec(ctx, g.Name, "ip", "addr", "add", address, "dev", "eth0"); err != nil {
				return "", err
			}
			defer func() {
				_, e := d.Lab.Exec(context.WithoutCancel(ctx), g.Name, "ip", "addr", "del", address, "dev", "eth0")
				err = errors.Join(err, e)
			}()
		}
		if _, err := d.weft(ctx, args...); err != nil {
			return "", err
		}
		defer d.undo(ctx, "tenants", "delete", t.name)
	}
	var said []string
	for _, t := range tenants {
		if err := until(ctx, 10*time.Second, t.a.Name+" reaches 10.9.0.2", func() (bool, error) {
			_, err := d.Lab.Exec(ctx, t.a.Name, "ping", "-n", "-c", "1", "-W", "1", "10.9.0.2")
			return err == nil, nil
		}); err != nil {
			return "", err
		}
		out, err := d.Lab.Exec(ctx, t.a.Name, "ip", "neigh", "show", "10.9.0.2")
		if err != nil {
			return "", err
		}
		if !strings.Contains(out, t.b.MAC.String()) {
			return "", fmt.Errorf("for %s in network %s, 10.9.0.2 is not %s: %s", t.a.Name, t.name, t.b.Name, strings.TrimSpace(out))
		}
		said = append(said, fmt.Sprintf("in %s 10.9.0.2 is %s", t.name, t.b.Name))
	}
	out, err := d.answered(ctx, h[0].Name, h[4].Name, 3)
	switch {
	case err != nil:
		return "", err
	case out > 0:
		return "", fmt.Errorf("%s, which is in a network of its own, reaches %s", h[0].Name, h[4].Name)
	}
	for _, t := range tenants {
		if _, err := d.weft(ctx, "tenants", "delete", t.name); err != nil {
			return "", err
		}
	}
	figure = fmt.Sprintf("%s; %s to %s, which is outside: none answered", strings.Join(said, ", "), h[0].Name, h[4].Name)
	return figure, until(ctx, 10*time.Second, h[0].Name+" back in the common network", func() (bool, error) {
		n, err := d.answered(ctx, h[0].Name, h[4].Name, 1)
		return n == 1, err
	})
}
