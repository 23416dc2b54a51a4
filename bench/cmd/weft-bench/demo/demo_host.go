package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// demoHostCommands are what the demo runs in hosts of its lab.
func demoHostCommands() []*cobra.Command {
	serve := &cobra.Command{
		Use:    "serve ADDRESS [NAME]",
		Short:  "Serve a page that says NAME, or the address that asks",
		Args:   cobra.RangeArgs(1, 2),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			s := http.Server{Addr: args[0], ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				said, _, _ := net.SplitHostPort(r.RemoteAddr)
				if len(args) > 1 {
					said = args[1]
				}
				fmt.Fprint(w, said)
			})}
			return s.ListenAndServe()
		},
	}
	fetch := &cobra.Command{
		Use:    "fetch URL COUNT",
		Short:  "Fetch a page COUNT times, by a connection each, and print how often it said what",
		Args:   cobra.ExactArgs(2),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return cli.Usagef(cmd, "COUNT %q: want a number", args[1])
			}
			c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			got := map[string]int{}
			for range n {
				said, err := page(&c, args[0])
				if err != nil {
					return err
				}
				got[said]++
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(got)
		},
	}
	flood := &cobra.Command{
		Use:    "flood INTERFACE",
		Short:  "Send datagrams of made-up hosts to made-up hosts until interrupted",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return sendFlood(ctx, args[0])
		},
	}
	return []*cobra.Command{serve, fetch, flood}
}

// page fetches a page of at most 4 KiB.
func page(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(text)))
	}
	return string(text), err
}

// sendFlood sends frames, some 15,000 a second, each from and to hosts that
// there are not.
func sendFlood(ctx context.Context, device string) error {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		return fmt.Errorf("packet socket of %s: %w", device, err)
	}
	made := func() (flow.MAC, netip.Addr) {
		n := rand.Uint32()
		return flow.MACFrom(0x02<<40 | 0x66<<32 | uint64(n)), netip.AddrFrom4([4]byte{10, 7, byte(n >> 8), byte(n)})
	}
	var frame []byte
	for sent := 1; ctx.Err() == nil; sent++ {
		src, from := made()
		dst, to := made()
		frame = packet.AppendUDP(frame[:0], packet.Ether{Src: src, Dst: dst}, packet.IP{Src: from, Dst: to}, uint16(sent), 2, nil)
		if _, err := unix.Write(fd, frame); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return fmt.Errorf("send on %s: %w", device, err)
		}
		if sent%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}
