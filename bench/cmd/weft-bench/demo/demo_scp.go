package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/lab/topology"
)

// sbiPort is the port of the network functions.
const sbiPort = "7777"

// scpRoles are the hosts of a small 5G core, in order: the NRF, the host of the
// front, two producers; the last host of the lab is a consumer.
func scpRoles(hosts []topology.Host) (nrf, front topology.Host, producers []topology.Host, consumer topology.Host, err error) {
	if len(hosts) < 5 {
		return nrf, front, nil, consumer, fmt.Errorf("the network has %d hosts, and scp needs 5", len(hosts))
	}
	return hosts[0], hosts[1], hosts[2:4], hosts[len(hosts)-1], nil
}

// scpSettings are the controller's settings for that core.
func (d features) scpSettings() ([]string, error) {
	topo, err := topology.Resolve(d.topology)
	if err != nil {
		return nil, err
	}
	nrf, front, _, _, err := scpRoles(topo.Hosts)
	if err != nil {
		return nil, err
	}
	subnet := nrf.IPv4.Masked().Addr().As4()
	var set []string
	for _, s := range []string{
		"scp.nrf=http://" + nrf.IPv4.Addr().String() + ":" + sbiPort, "scp.listen=" + front.IPv4.Addr().String() + ":" + sbiPort,
		"scp.namespace=weft-" + demoLab + "." + front.Name, fmt.Sprintf(`scp.vips=["%d.%d.%d.224/28"]`, subnet[0], subnet[1], subnet[2]),
	} {
		set = append(set, "--set", s)
	}
	return set, nil
}

// showSCP has two simulated UDMs register at an NRF, and a consumer find both at
// one address.
func (d features) showSCP(ctx context.Context) (figure string, err error) {
	nrf, _, producers, consumer, err := scpRoles(d.Lab.Topology().Hosts)
	if err != nil {
		return "", err
	}
	exe, err := companion.Find("weft")
	if err != nil {
		return "", err
	}
	where := "http://" + nrf.IPv4.Addr().String() + ":" + sbiPort
	begin := func(host string, args ...string) (func(), error) {
		fmt.Fprintf(d.out, "         %s $ weft nf %s\n", host, strings.Join(args, " "))
		c, err := d.Lab.Start(ctx, host, append([]string{exe, "nf"}, args...)...)
		if err != nil {
			return nil, err
		}
		return func() { _ = c.Process.Kill(); _ = c.Wait() }, nil // it may have ended
	}
	end, err := begin(nrf.Name, "nrf")
	if err != nil {
		return "", err
	}
	defer end()
	for _, h := range producers {
		end, err := begin(h.Name, "udm", "--nrf", where)
		if err != nil {
			return "", err
		}
		defer end()
	}
	if err := until(ctx, 30*time.Second, "both producers known", func() (ok bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.GetScp(n.Ctx, &api.GetScpRequest{Type: "UDM"})
			ok = len(m.GetProducers()) == 2 && m.GetFront() == "intercepting"
			return err
		})
		return ok, err
	}); err != nil {
		return "", err
	}
	curl := func(url string, more ...string) (string, error) {
		return d.Lab.Exec(ctx, consumer.Name, append([]string{"curl", "-s", "-f", "-m", "5", "--http2-prior-knowledge", url}, more...)...)
	}
	if err := until(ctx, 10*time.Second, "discovered", func() (bool, error) {
		_, err := curl(where + "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF")
		return err == nil, err
	}); err != nil {
		return "", err
	}
	var address string
	if err := d.Ask(ctx, func(n *cli.Controller) error {
		m, err := n.GetScp(n.Ctx, &api.GetScpRequest{Type: "UDM"})
		if err == nil && len(m.Endpoints) != 1 {
			return fmt.Errorf("%d end points", len(m.Endpoints))
		}
		if err == nil {
			address = m.Endpoints[0].Address
		}
		return err
	}); err != nil {
		return "", err
	}
	const requests = 20
	for range requests {
		if _, err := curl("http://" + address + "/nudm-sdm/v2/imsi-1/am-data"); err != nil {
			return "", fmt.Errorf("%s to the end point %s: %w", consumer.Name, address, err)
		}
	}
	out, err := d.weft(ctx, "scp", "pairs", "UDM")
	if err == nil && !strings.Contains(out, consumer.IPv4.Addr().String()) {
		err = errors.New("no pair of " + consumer.Name + ":\n" + out)
	}
	return fmt.Sprintf("2 producers are one end point, %s; %d connections by one pair of entries", address, requests), err
}
