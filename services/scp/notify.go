package scp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/sbi"
)

// notify passes a notification of the NRF on to the subscriber, with the end point in
// place of the instance if there is one.
func (n *notifier) notify(w http.ResponseWriter, r *http.Request, client netip.Addr) {
	p := n.front.proxy
	nrf, _, _ := p.cfg.Load().nrf() // Validate has seen it
	may := client == nrf.Addr() || p.relays(client)
	c, known := n.open(strings.TrimPrefix(r.URL.Path, callbacks))
	to, err := url.Parse(c.URI)
	switch {
	case !may:
		p.count.forbidden.Add(1)
		sbi.WriteProblem(w, sbi.Problem(http.StatusForbidden, sbi.RequesterNotAllowed, fmt.Sprintf("%v is not the NRF", client)))
		return
	case !known || err != nil:
		p.count.malformed.Add(1)
		sbi.WriteProblem(w, sbi.Problem(http.StatusNotFound, sbi.SubscriptionNotFound, "the front has not made this URI"))
		return
	case r.Method != http.MethodPost:
		sbi.WriteProblem(w, sbi.Problem(http.StatusMethodNotAllowed, "", "want POST"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostAnswer))
	if err != nil {
		p.count.malformed.Add(1)
		sbi.WriteProblem(w, unreached(err))
		return
	}
	at, err := addressOf(to)
	if err != nil || !dialable(p.cfg.Load(), at) { // the configuration may be another one now
		sbi.WriteProblem(w, sbi.Problem(http.StatusNotFound, sbi.SubscriptionNotFound, "the front may not notify that address"))
		return
	}
	all := n.translate(r.Context(), c, body)
	for i := len(all) - 1; i >= 0; i-- { // the last answer is the first one's
		keepBody(r, all[i])
		if i > 0 {
			n.front.relay.send(&discard{http.Header{}}, r, to, at)
			continue
		}
		n.front.relay.send(w, r, to, at)
	}
}

// discard is a ResponseWriter that discards the answer.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// translate returns the notifications that a subscriber gets for one of the NRF's: one of
// the end point for an instance that has one; for the end of an instance the NRF's own,
// and the end of the end point if that has no other instance.
func (n *notifier) translate(ctx context.Context, c callback, body []byte) [][]byte {
	var data sbi.NotificationData
	if answers.Check(body) != nil || json.Unmarshal(body, &data) != nil {
		return [][]byte{body}
	}
	cut := strings.LastIndexByte(data.NFInstanceURI, '/') + 1
	id := strings.ToLower(data.NFInstanceURI[cut:])
	write := func(by endpointRef, event sbi.NFEvent, one *sbi.NFProfile) []byte {
		data.NFInstanceURI, data.Event, data.NFProfile, data.ProfileChanges = data.NFInstanceURI[:cut]+by.id, event, one, nil
		text, err := json.Marshal(data)
		if err != nil {
			return nil
		}
		n.front.proxy.count.translated.Add(1)
		return text
	}
	if data.Event == sbi.NFDeregistered {
		if by, last := n.left(id); last {
			if text := write(by, sbi.NFDeregistered, nil); text != nil {
				return [][]byte{body, text}
			}
		}
		return [][]byte{body}
	}
	by, one := n.endPoint(ctx, c, id)
	if one != nil {
		if text := write(by, data.Event, one); text != nil {
			return [][]byte{text}
		}
	}
	n.front.proxy.count.untranslated.Add(1)
	return [][]byte{body}
}

// left returns the end point of an instance that ends, and whether it was the last one
// of that end point.
func (n *notifier) left(id string) (by endpointRef, last bool) {
	n.mu.Lock()
	by, known := n.notified[id]
	delete(n.notified, id)
	n.mu.Unlock()
	p := n.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	return by, known && !slices.ContainsFunc(p.members(by.of), func(m member) bool { return m.id() != id })
}

// endPoint returns the end point by which a subscriber reaches an instance, when the
// switches are ready for it; no profile if it has none (endpointFor).
func (n *notifier) endPoint(ctx context.Context, c callback, id string) (by endpointRef, one *sbi.NFProfile) {
	p := n.front.proxy
	if !p.knows(id) {
		_ = p.look(ctx, id, n.front.nrf.profile) // the notification stays as it is
	}
	by, one, vips := n.find(c, id)
	if one == nil || n.await(ctx, vips) != nil {
		return by, nil
	}
	n.note(id, by)
	return by, one
}

// find returns the end point by which a subscriber reaches an instance, with its
// profile, and the VIPs that this names; no profile if it has none.
func (n *notifier) find(c callback, id string) (by endpointRef, one *sbi.NFProfile, vips []string) {
	p := n.front.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.book[id]
	if x == nil {
		return by, nil, nil
	}
	who := requester{Requester: sbi.Requester{NFType: c.Type}, any: c.relays(p), at: c.at()}
	if y := p.book[c.Instance]; y != nil && y.profile.NFType == c.Type {
		who.Complete(y.profile)
	}
	return endpointFor(p, x, who, n.front.now())
}

// relays reports whether the subscriber uses producers for others: an SCP or a registrar.
func (c callback) relays(p *proxy) bool {
	return (c.Type == "" || c.Type == sbi.SCP) && p.relays(c.at())
}

// at returns where the subscriber is notified; invalid if that is not known.
func (c callback) at() netip.Addr {
	u, err := url.Parse(c.URI)
	if err != nil {
		return netip.Addr{}
	}
	at, _ := addressOf(u) // else none
	return at.Addr()
}

// await waits until the switches are ready for some VIPs.
func (n *notifier) await(ctx context.Context, vips []string) error {
	waiting, stop := context.WithTimeout(ctx, n.front.ready)
	defer stop()
	return n.front.await(waiting, vips)
}

// note records that consumers have an end point in place of an instance.
func (n *notifier) note(id string, by endpointRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.notified) >= mostNotified {
		clear(n.notified)
	}
	n.notified[id] = by
}
