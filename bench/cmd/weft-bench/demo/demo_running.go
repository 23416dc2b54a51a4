package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/lab/traffic"
)

// showHeartbeats waits for beats of all switches.
func (d features) showHeartbeats(ctx context.Context) (figure string, err error) {
	want := len(d.Lab.Topology().Switches)
	err = until(ctx, 20*time.Second, "all switches alive to heartbeats", func() (alive bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.ListHeartbeats(n.Ctx, &api.ListHeartbeatsRequest{})
			var half, most []uint64
			missed := uint64(0)
			for _, s := range m.GetSwitches() {
				half, most, missed = append(half, s.P50Us), append(most, s.MaxUs), missed+s.Missed
			}
			beating := count(m.GetSwitches(), func(s *api.SwitchHeartbeat) bool { return s.State == "alive" && s.Beats >= 3 })
			if alive = beating == want; alive {
				figure = fmt.Sprintf("%d switches, %g a second each: p50 of the median switch %.2f ms, slowest of all %.1f ms, %d missed",
					want, m.Rate, float64(quantile.Median(half))/1000, float64(slices.Max(most))/1000, missed)
			}
			return err
		})
		return alive, err
	})
	if err != nil {
		return figure, err
	}
	table, err := d.weft(ctx, "get", "heartbeats")
	fmt.Fprintln(d.out, inset(firstLines(table, 4)))
	return figure, err
}

// firstLines returns the first lines of a text.
func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// inset puts a text below the progress.
func inset(text string) string { return "         " + strings.ReplaceAll(text, "\n", "\n         ") }

// showOverload has one host flood while others talk on programmed routes and
// anew. Nobody but the one that floods may lose anything.
func (d features) showOverload(ctx context.Context) (string, error) {
	h, err := d.hosts(6)
	if err != nil {
		return "", err
	}
	exe, err := companion.Find("weft")
	if err != nil {
		return "", err
	}
	for _, pair := range [][2]int{{2, 3}, {4, 5}} {
		if _, err := d.answered(ctx, h[pair[0]].Name, h[pair[1]].Name, 2); err != nil {
			return "", err
		}
	}
	steady := d.stream(ctx, h[2].Name, h[3].Name, 500, wholeStream)
	flood, err := d.Lab.Start(ctx, h[0].Name, exe, "demo", "flood", "eth0")
	if err != nil {
		return "", err
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = flood.Process.Signal(syscall.SIGTERM) // it may have ended
			_ = flood.Wait()
		}
	}
	defer end()
	limit := "not limited, as nobody at its switch waits for it" // a port that sends alone is limited only where that harms others
	_ = until(ctx, 5*time.Second, "", func() (limited bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.ListLimits(n.Ctx, &api.ListLimitsRequest{})
			if len(m.GetLimits()) == 1 && m.Limits[0].Where == "switch" {
				limit, limited = fmt.Sprintf("%.0f packet-ins a second, limited to %.0f by its switch", m.Limits[0].Offered, m.Limits[0].Limit), true
			}
			return err
		})
		return limited, err
	})
	table, err := d.weft(ctx, "get", "limits")
	fmt.Fprintln(d.out, inset(firstLines(table, 2)))
	if err != nil {
		return "", err
	}
	var anew traffic.PingResult
	for range 5 {
		if _, err := d.Lab.Exec(ctx, h[4].Name, "ip", "neigh", "flush", "dev", "eth0"); err != nil {
			return "", err
		}
		r, err := d.Lab.Ping(ctx, h[4].Name, h[5].Name, traffic.PingOptions{Count: 1, Timeout: 5 * time.Second})
		if err != nil {
			return "", err
		}
		anew.Sent, anew.Received, anew.Max = anew.Sent+r.Sent, anew.Received+r.Received, max(anew.Max, r.Max)
	}
	s := <-steady
	end()
	figure := fmt.Sprintf("%s floods: %s; %s to %s: %d of %d lost; %s to %s anew: %d of %d lost, slowest %.0f ms",
		h[0].Name, limit, h[2].Name, h[3].Name, s.Lost(), s.Sent, h[4].Name, h[5].Name, anew.Lost(), anew.Sent, anew.Max)
	if s.Lost()+anew.Lost() > 0 {
		return figure, errors.New("others have lost packets")
	}
	return figure, until(ctx, 20*time.Second, "free of limits when it is over", func() (free bool, err error) {
		err = d.Ask(ctx, func(n *cli.Controller) error {
			m, err := n.ListLimits(n.Ctx, &api.ListLimitsRequest{})
			free = len(m.GetLimits()) == 0
			return err
		})
		return free, err
	})
}

// showRyu asks what a program written for Ryu would, and adds an entry and
// takes it away.
func (d features) showRyu(ctx context.Context) (string, error) {
	call := func(path, body string) (string, error) {
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://"+d.ryu+path, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		if body == "" {
			fmt.Fprintf(d.out, "         $ curl http://%s%s\n", d.ryu, path)
		} else {
			fmt.Fprintf(d.out, "         $ curl -X POST -d '%s' http://%s%s\n", body, d.ryu, path)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s %s: %s", path, resp.Status, text)
		}
		return string(text), err
	}
	text, err := call("/stats/switches", "")
	if err != nil {
		return "", err
	}
	var switches []uint64
	if err := json.Unmarshal([]byte(text), &switches); err != nil || len(switches) != len(d.Lab.Topology().Switches) {
		return "", fmt.Errorf("/stats/switches answers %s", text)
	}
	links, err := call("/v1.0/topology/links", "")
	if err != nil {
		return "", err
	}
	var list []any
	if err := json.Unmarshal([]byte(links), &list); err != nil {
		return "", fmt.Errorf("/v1.0/topology/links: %w", err)
	}
	s := d.Lab.Topology().Switches[0]
	dpid := uint64(s.DPID)
	entry := fmt.Sprintf(`{"dpid": %d, "priority": 7, "cookie": 4660, "match": {"eth_type": 35061}, "actions": [{"type": "OUTPUT", "port": 1}]}`, dpid)
	has := func(want bool) error {
		return until(ctx, 3*time.Second, fmt.Sprintf("so that ovs-ofctl dump-flows %s has the entry: %v", s.Name, want), func() (bool, error) {
			lines, err := d.Lab.OfctlDumpFlows(ctx, s.Name)
			return slices.ContainsFunc(lines, func(l string) bool {
				return strings.Contains(l, "cookie=0x1234,") && strings.Contains(l, "dl_type=0x88f5")
			}) == want, err
		})
	}
	if _, err := call("/stats/flowentry/add", entry); err != nil {
		return "", err
	}
	if err := has(true); err != nil {
		return "", err
	}
	if _, err := call("/stats/flowentry/delete_strict", entry); err != nil {
		return "", err
	}
	figure := fmt.Sprintf("%d switches, %d links; an entry added, seen by ovs-ofctl, and deleted", len(switches), len(list))
	return figure, has(false)
}

// showConfig changes the configuration under a running ping, and puts it back.
func (d features) showConfig(ctx context.Context) (string, error) {
	h := d.Lab.Topology().Hosts
	from, to := h[0].Name, h[len(h)-1].Name
	if _, err := d.answered(ctx, from, to, 3); err != nil {
		return "", err
	}
	file := filepath.Join(d.dir, "weft.yaml")
	text := "stats:\n  interval: 2s\nforwarding:\n  idle_timeout: 4m\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", err
	}
	result := d.stream(ctx, from, to, 600, wholeStream)
	began := time.Now()
	out, err := d.weft(ctx, "config", "apply", file)
	if err != nil {
		return "", err
	}
	took := time.Since(began)
	fmt.Fprintln(d.out, inset(firstLines(out, 4)))
	began = time.Now()
	if _, err := d.weft(ctx, "config", "rollback"); err != nil {
		return "", err
	}
	back := time.Since(began)
	r := <-result
	figure := fmt.Sprintf("applied in %.1f s, put back in %.1f s; %s to %s every 2 ms: %d of %d lost", took.Seconds(), back.Seconds(), from, to, r.Lost(), r.Sent)
	switch {
	case r.Error != "":
		return figure, errors.New(r.Error)
	case r.Lost() > 0:
		return figure, errors.New("packets were lost")
	}
	return figure, nil
}

// showHealth looks at everything until nothing is on its way any more. What limits were
// reached lately it only shows: that may be by the demo's own flood.
func (d features) showHealth(ctx context.Context) (string, error) {
	well := func(h get.HealthResult) bool { return h.State == get.HealthOK || h.Check == "limits" }
	var list []get.HealthResult
	err := until(ctx, 20*time.Second, "well", func() (bool, error) {
		err := d.Ask(ctx, func(n *cli.Controller) (err error) {
			list, err = get.CheckHealth(n)
			return err
		})
		return err == nil && count(list, well) == len(list), err
	})
	var said []string
	for _, h := range list {
		said = append(said, h.Check+" "+h.State)
		if !well(h) {
			err = errors.Join(err, fmt.Errorf("%s: %s; %s", h.Check, h.Detail, h.Remedy))
		}
	}
	if err != nil {
		return strings.Join(said, ", "), err
	}
	out, err := d.weft(ctx, "get", "health")
	if err != nil {
		return out, err
	}
	fmt.Fprintln(d.out, inset(strings.TrimSpace(out)))
	return strings.Join(said, ", "), nil
}
