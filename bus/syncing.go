package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// monitorPort is the port at which NATS servers usually answer monitoring
	// requests, if they do.
	monitorPort = 8222
	// syncEvery is how often the servers are asked whether they sync; syncWait
	// bounds one request.
	syncEvery = 10 * time.Minute
	syncWait  = 2 * time.Second
)

// watch asks the external servers, at once and periodically, whether
// they sync each write to disk before they confirm it, until the store is
// closed. Only their monitoring tells.
func (y *syncing) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		asked := make(chan []string, 1)
		go func() { asked <- y.ask(ctx) }()
		select {
		case lazy := <-asked:
			if before := y.lazy.Swap(&lazy); len(lazy) > 0 && y.store.config.manifests() != "" && (before == nil || !slices.Equal(*before, lazy)) {
				y.store.config.Log.Warn("servers of the store confirm writes before these are on disk: a power failure loses confirmed state", "servers", strings.Join(lazy, ", "), "remedy", "jetstream { sync_interval: always } in their configuration")
			}
		case <-y.store.link.closed:
			return
		}
		select {
		case <-tick.C:
		case <-y.store.link.closed:
			return
		}
	}
}

// ask returns the names of the servers that do not sync each write.
// Servers without monitoring are not among them.
func (y *syncing) ask(ctx context.Context) (lazy []string) {
	for _, server := range y.store.servers() {
		name, always, err := askVarz(ctx, net.JoinHostPort(server.Hostname(), strconv.Itoa(y.port())))
		if err != nil {
			y.store.config.Log.Debug("a server of the store does not say whether it syncs", "server", server.Host, "error", err)
		} else if !always && !slices.Contains(lazy, name) {
			lazy = append(lazy, name)
		}
	}
	slices.Sort(lazy)
	return lazy
}

func (y *syncing) port() int {
	if y.store.config.MonitorPort > 0 {
		return y.store.config.MonitorPort
	}
	return monitorPort
}

// askVarz asks the monitoring of a server for its name and whether it syncs
// each write (https://docs.nats.io/running-a-nats-service/nats_admin/monitoring).
func askVarz(ctx context.Context, address string) (name string, always bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/varz", nil)
	if err != nil {
		return "", false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	var varz struct {
		Name      string `json:"server_name"`
		JetStream struct {
			Config *struct {
				SyncAlways bool `json:"sync_always"`
			} `json:"config"`
		} `json:"jetstream"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&varz); err != nil {
		return "", false, err
	}
	if resp.StatusCode != http.StatusOK || varz.Name == "" || varz.JetStream.Config == nil {
		return "", false, fmt.Errorf("%s answers %s, and nothing about JetStream", address, resp.Status)
	}
	return varz.Name, varz.JetStream.Config.SyncAlways, nil
}
