package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/backoff"
)

// keepCarriers has every internal port of a namespace's ports be up while its
// port has carrier, and down while it has none, until ctx ends: the node's
// routing sees at once that a link is gone.
func keepCarriers(ctx context.Context, namespace string, ports []Port, log *slog.Logger) {
	said := ""
	for ctx.Err() == nil {
		err := watchCarriers(ctx, namespace, ports)
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said {
			log.Warn("the carrier of ports is not followed", "namespace", namespace, "error", err)
			said = text
		}
		_ = backoff.Sleep(ctx, time.Second)
	}
}

// carriers is what is known of the interfaces of a namespace.
type carriers struct {
	handle *netlink.Handle
	of     map[string]*Port // by the names of both interfaces
	flags  map[string]uint32
	index  map[string]int
}

func watchCarriers(ctx context.Context, namespace string, ports []Port) error {
	open := netns.Get
	if namespace != "" {
		open = func() (netns.NsHandle, error) { return netns.GetFromName(namespace) }
	}
	ns, err := open()
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", namespace, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	c := &carriers{handle: h, of: map[string]*Port{}, flags: map[string]uint32{}, index: map[string]int{}}
	for i := range ports {
		c.of[ports[i].Interface], c.of[ports[i].InternalInterface] = &ports[i], &ports[i]
	}
	updates := make(chan netlink.LinkUpdate, 1024)
	failed := make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	err = netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{
		Namespace: &ns, ListExisting: true, ReceiveBufferSize: 1 << 20,
		ErrorCallback: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow the interfaces: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return fmt.Errorf("follow the interfaces: %w", err)
		case u, ok := <-updates:
			if !ok {
				return errors.New("follow the interfaces: the kernel says no more")
			}
			c.update(&u)
		}
	}
}

// update takes what the kernel says of an interface.
func (c *carriers) update(u *netlink.LinkUpdate) {
	name := u.Attrs().Name
	p := c.of[name]
	if p == nil {
		return
	}
	if u.Header.Type == unix.RTM_DELLINK {
		delete(c.flags, name)
		return
	}
	c.flags[name], c.index[name] = u.IfInfomsg.Flags, int(u.IfInfomsg.Index)
	outside, known := c.flags[p.Interface]
	inside, there := c.flags[p.InternalInterface]
	if !known || !there {
		return
	}
	carrier, up := outside&unix.IFF_UP != 0 && outside&unix.IFF_LOWER_UP != 0, inside&unix.IFF_UP != 0
	if carrier == up {
		return
	}
	link := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: c.index[p.InternalInterface]}}
	set := c.handle.LinkSetDown
	if carrier {
		set = c.handle.LinkSetUp
	}
	_ = set(link) // if it is gone, the kernel says so
}
