package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// showRouter puts two hosts at different switches into subnets of their own,
// with a router each, which know of each other by static routes.
func (d features) showRouter(ctx context.Context) (figure string, err error) {
	h, err := d.hosts(3)
	if err != nil {
		return "", err
	}
	type side struct{ host, sw, net, link, other string }
	sides := []side{{host: h[0].Name, net: "10.7.1", link: "10.7.0.1", other: "10.7.2"}, {host: h[2].Name, net: "10.7.2", link: "10.7.0.2", other: "10.7.1"}}
	for i := range sides {
		s := &sides[i]
		dpid, err := d.Lab.SwitchDPID(h[2*i].Switch)
		if err != nil {
			return "", err
		}
		s.sw = shortDPID(dpid.String())
		if s.sw == sides[0].sw && i > 0 {
			s.link = "" // one switch, one router
		}
		for _, c := range [][2]string{
			{"addr add " + s.net + ".9/24 dev eth0", "addr del " + s.net + ".9/24 dev eth0"},
			{"route add " + s.other + ".0/24 via " + s.net + ".1 src " + s.net + ".9", "route del " + s.other + ".0/24"},
		} {
			if _, err := d.Lab.Exec(ctx, s.host, append([]string{"ip"}, strings.Fields(c[0])...)...); err != nil {
				return "", err
			}
			defer func() {
				_, _ = d.Lab.Exec(context.WithoutCancel(ctx), s.host, append([]string{"ip"}, strings.Fields(c[1])...)...)
			}() // with its address a route is gone
		}
		for _, a := range []string{s.net + ".1/24", s.link + "/24"} {
			if strings.HasPrefix(a, "/") {
				continue
			}
			if _, err := d.weft(ctx, "router", "add", s.sw, a); err != nil {
				return "", err
			}
			defer d.undo(ctx, "router", "delete", s.sw, a)
		}
	}
	if a, b := sides[0], sides[1]; a.sw != b.sw {
		for _, x := range [][2]side{{a, b}, {b, a}} {
			if _, err := d.weft(ctx, "router", "route", x[0].sw, x[0].other+".0/24", x[1].link); err != nil {
				return "", err
			}
			defer d.undo(ctx, "router", "unroute", x[0].sw, x[0].other+".0/24")
		}
	}
	const n = 20
	to, got, ttl := sides[1].net+".9", "", ""
	ping := func(count int) (err error) {
		got, err = d.Lab.Exec(ctx, sides[0].host, "ping", "-n", "-c", fmt.Sprint(count), "-i", "0.05", "-W", "2", to)
		if _, rest, ok := strings.Cut(got, "ttl="); ok {
			ttl, _, _ = strings.Cut(rest, " ")
		}
		return err
	}
	if err := until(ctx, 10*time.Second, to+" reached", func() (bool, error) { return ping(1) == nil, nil }); err != nil {
		return "", err
	}
	err = ping(n)
	answers := strings.Count(got, "bytes from")
	figure = fmt.Sprintf("%s pings %s in another subnet: %d of %d answered, ttl %s", sides[0].host, to, answers, n, ttl)
	if answers < n {
		return figure, errors.Join(err, errors.New("answers were lost"))
	}
	return figure, err
}
