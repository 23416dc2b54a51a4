package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// showNAT has the last host of the lab be the outside: one inside asks it, and
// is seen with the gateway's address; it asks one inside by a forwarded port.
func (d features) showNAT(ctx context.Context) (figure string, err error) {
	h, err := d.hosts(4)
	if err != nil {
		return "", err
	}
	all := d.Lab.Topology().Hosts
	client, server, outside := h[0], h[2], all[len(all)-1]
	dpid, err := d.Lab.SwitchDPID(outside.Switch)
	if err != nil {
		return "", err
	}
	const pool, hop, gateway = "198.51.100.1", "198.51.100.9", "10.0.0.254"
	for _, s := range []struct {
		host     string
		do, undo []string
	}{
		{outside.Name, []string{"ip", "addr", "add", hop + "/24", "dev", "eth0"}, []string{"ip", "addr", "del", hop + "/24", "dev", "eth0"}},
		{client.Name, []string{"ip", "route", "add", "198.51.100.0/24", "via", gateway}, []string{"ip", "route", "del", "198.51.100.0/24"}},
		{server.Name, []string{"ip", "route", "add", "198.51.100.0/24", "via", gateway}, []string{"ip", "route", "del", "198.51.100.0/24"}},
	} {
		if _, err := d.Lab.Exec(ctx, s.host, s.do...); err != nil {
			return "", err
		}
		defer func() {
			_, e := d.Lab.Exec(context.WithoutCancel(ctx), s.host, s.undo...)
			err = errors.Join(err, e)
		}()
	}
	for host, name := range map[string][]string{outside.Name: nil, server.Name: {server.Name}} {
		end, err := d.serve(ctx, host, name...)
		if err != nil {
			return "", err
		}
		defer end()
	}
	if _, err := d.weft(ctx, "nat", "add", "demo", "--switch", shortDPID(dpid.String()), "--port", fmt.Sprint(outside.Port), "--pool", pool,
		"--next-hop", hop, "--gateway", gateway, "--inside", "10.0.0.0/24", "--forward", "tcp:80="+server.IPv4.Addr().String()+":8080"); err != nil {
		return "", err
	}
	defer d.undo(ctx, "nat", "delete", "demo")
	if err := until(ctx, 10*time.Second, "the gateway up", func() (up bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.ListNats(n.Ctx, &api.ListNatsRequest{Name: "demo"})
			up = len(m.GetGateways()) == 1 && m.Gateways[0].State == "up"
			return err
		})
		return up, err
	}); err != nil {
		return "", err
	}
	const n = 20
	out, err := d.fetch(ctx, client.Name, hop+":8080", n)
	if err != nil {
		return "", fmt.Errorf("%s to the outside: %w", client.Name, err)
	}
	in, err := d.fetch(ctx, outside.Name, pool, n)
	if err != nil {
		return "", fmt.Errorf("the outside to port 80 of %s: %w", pool, err)
	}
	figure = fmt.Sprintf("%d connections of %s to %s, seen there as: %s; %d from there to %s: %s", n, client.Name, outside.Name, shares(out), n, pool, shares(in))
	if out[pool] != n || in[server.Name] != n {
		return figure, errors.New("not all were translated")
	}
	return figure, nil
}
