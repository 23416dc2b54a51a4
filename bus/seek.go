package bus

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft/internal/backoff"
)

const (
	// seekAfter is how long operations must fail at a connected server before
	// seek looks for another one. It is shorter than the time for which
	// standbys leave the mastership to a master that does not reach the store.
	seekAfter = 500 * time.Millisecond
	// seekEvery is how often seek checks this; seekMost, while no server
	// answers.
	seekEvery = 250 * time.Millisecond
	seekMost  = 2 * time.Second
	// seekWait bounds the connection to another server, and its answer.
	seekWait = 500 * time.Millisecond
)

// run leaves a server that is cut off from the rest of its cluster: such a
// server answers pings, but nothing that needs a majority. Once operations have
// failed for seekAfter, and another server answers, run moves the connection
// there. It ends when the store is closed.
func (k *seeker) run() {
	for pauses := (backoff.Exponential{First: seekEvery, Last: seekMost}); ; {
		select {
		case <-k.store.link.closed:
			return
		case <-time.After(pauses.Next()):
		}
		since := k.failing.Load()
		if since == 0 || time.Since(time.Unix(0, since)) < seekAfter || !k.store.conn.IsConnected() || answers(k.store.js) {
			pauses.Reset()
			continue
		}
		for _, server := range k.store.servers() {
			if strings.HasSuffix(k.store.conn.ConnectedUrl(), server.Host) || !k.serves(server) {
				continue
			}
			k.store.config.Log.Warn("a server of the store does not reach the others; using another", "server", k.store.conn.ConnectedUrlRedacted(), "other", server.Host)
			k.failing.Store(0)
			k.better.Store(&server.Host)
			_ = k.store.conn.ForceReconnect() // fails only if the connection is closed
			pauses.Reset()
			break
		}
	}
}

// choose returns the server that run has found, or the next one if there is
// none.
func (k *seeker) choose(list []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	host := k.better.Swap(nil)
	for i := range list {
		if host != nil && list[i].URL.Host == *host {
			return &list[i], 0
		}
	}
	return nil, 0
}

// servers returns the candidate servers: the configured ones, and those that
// they have announced.
func (s *Store) servers() (list []*url.URL) {
	known := map[string]bool{}
	var user *url.Userinfo
	for _, text := range append(strings.Split(s.config.URL, ","), s.conn.Servers()...) {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || known[u.Host] {
			continue
		}
		known[u.Host] = true
		if user == nil {
			user = u.User
		}
		if u.User == nil {
			u.User = user
		}
		list = append(list, u)
	}
	return list
}

// serves reports whether a server answers requests that need a majority.
func (k *seeker) serves(server *url.URL) bool {
	conn, err := nats.Connect(server.String(), append(k.store.proof(), nats.NoReconnect(), nats.Timeout(seekWait), nats.IgnoreDiscoveredServers())...)
	if err != nil {
		return false
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	return err == nil && answers(js)
}

// answers reports whether JetStream has a leader.
func answers(js jetstream.JetStream) bool {
	ctx, cancel := context.WithTimeout(context.Background(), seekWait)
	defer cancel()
	_, err := js.AccountInfo(ctx)
	return err == nil
}

// tried records the result of an operation.
func (k *seeker) tried(err error) {
	if k.failing.Load() != 0 {
		if err == nil || !passing(err) {
			k.failing.Store(0)
		}
	} else if err != nil && passing(err) {
		k.failing.Store(time.Now().UnixNano())
	}
}
