package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/weft-sdn/weft/internal/quantile"
)

// A bare ping-pong is the least that a round trip over a transport's library
// takes: two processes that share the controller's processor, a stream between
// them over a Unix socket, one message at a time and nothing of Weft's.

// benchBares are the transports that have one.
var benchBares = []string{"grpc", "ws"}

// benchBareSize is how long a message is.
const benchBareSize = 96

// benchBareMost is what a crossing may add to the median, to the round trip of a
// bare ping-pong.
const benchBareMost = 1.3

// benchBare is a bare ping-pong.
type benchBare struct {
	cmd    *exec.Cmd
	ask    io.WriteCloser
	answer *bufio.Reader
	rounds []float64 // medians, µs
}

// benchBareStart starts the bare ping-pong of a transport.
func benchBareStart(transport string, cpus benchCPUs) (*benchBare, error) {
	b := &benchBare{cmd: exec.Command("/proc/self/exe", "bench", "ping", "--transport", transport)}
	b.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	b.cmd.Stderr = os.Stderr
	var err error
	if b.ask, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.answer = bufio.NewReader(out)
	started := make(chan error)
	go func() {
		// The thread lives as long as the child, which dies with it.
		runtime.LockOSThread()
		if cpus.subject >= 0 {
			var set unix.CPUSet
			set.Set(cpus.subject)
			_ = unix.SchedSetaffinity(0, &set) // inherited by the child
		}
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 500_000, 0, 0, 0) // as workers have; inherited, too
		err := b.cmd.Start()
		started <- err
		if err == nil {
			_ = b.cmd.Wait() // whoever reads from it learns it
		}
	}()
	return b, <-started
}

// measure measures for a time and notes the median.
func (b *benchBare) measure(d time.Duration) error {
	if _, err := fmt.Fprintln(b.ask, d); err != nil {
		return err
	}
	line, err := b.answer.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the bare ping-pong has ended: %w", err)
	}
	us, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	b.rounds = append(b.rounds, us)
	return err
}

// close ends it: both processes end with their standard input.
func (b *benchBare) close() { _ = b.ask.Close() }

// benchPingCommand is the process of a bare ping-pong that asks; with --listen,
// the one that answers.
func benchPingCommand() *cobra.Command {
	var transport, listen string
	cmd := &cobra.Command{
		Use: "ping", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen != "" {
				return benchPong(transport, listen)
			}
			return benchPing(cmd.Context(), transport, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&transport, "transport", "grpc", "grpc or ws")
	cmd.Flags().StringVar(&listen, "listen", "", "answer at this Unix socket")
	return cmd
}

// benchPing reads durations, measures for each, and prints medians in µs.
func benchPing(ctx context.Context, transport string, in io.Reader, out io.Writer) error {
	address := fmt.Sprintf("@weft-ping-%d-%d", os.Getpid(), time.Now().UnixNano())
	pong := exec.Command("/proc/self/exe", "bench", "ping", "--transport", transport, "--listen", address)
	pong.Stderr = os.Stderr
	pong.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // it dies with the thread that has started it
	defer runtime.UnlockOSThread()
	if err := pong.Start(); err != nil {
		return err
	}
	defer func() { _, _ = pong.Process.Kill(), pong.Wait() }()
	trip, err := benchBareTrip(ctx, transport, address)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		d, err := time.ParseDuration(lines.Text())
		if err != nil {
			return err
		}
		took := make(chan []time.Duration)
		failed := make(chan error, 1)
		go func() { // not on the locked thread
			list, err := benchTrips(trip, d)
			failed <- err
			took <- list
		}()
		if err := <-failed; err != nil {
			return err
		}
		list := <-took
		fmt.Fprintf(out, "%.3f\n", float64(quantile.Median(list))/float64(time.Microsecond))
	}
	return nil
}

// benchTrips makes round trips, one after the other, for a time.
func benchTrips(trip func() error, d time.Duration) (took []time.Duration, err error) {
	for end := time.Now().Add(d); len(took) == 0 || time.Now().Before(end); {
		began := time.Now()
		if err := trip(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// benchBareTrip connects and returns what makes a round trip.
func benchBareTrip(ctx context.Context, transport, address string) (func() error, error) {
	dial := func(ctx context.Context) (conn net.Conn, err error) {
		for range 100 { // the other process is starting
			if conn, err = new(net.Dialer).DialContext(ctx, "unix", address); err == nil {
				return conn, nil
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil, err
	}
	message := make([]byte, benchBareSize)
	switch transport {
	case "grpc":
		cc, err := grpc.NewClient("passthrough:///localhost",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(benchOctets{})))
		if err != nil {
			return nil, err
		}
		s, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/weft.Bench/Echo", grpc.WaitForReady(true))
		if err != nil {
			return nil, err
		}
		return func() error {
			if err := s.SendMsg(&message); err != nil {
				return err
			}
			return s.RecvMsg(&message)
		}, nil
	case "ws":
		c, _, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{
			HTTPClient: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}},
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			if err := c.Write(ctx, websocket.MessageBinary, message); err != nil {
				return err
			}
			_, _, err := c.Read(ctx)
			return err
		}, nil
	}
	return nil, fmt.Errorf("transport %q: want one of %s", transport, strings.Join(benchBares, ", "))
}

// benchPong answers each message with itself until its parent ends it.
func benchPong(transport, address string) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", address)
	if err != nil {
		return err
	}
	if transport == "grpc" {
		return grpc.NewServer(grpc.ForceServerCodecV2(benchOctets{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			var message []byte
			for {
				if err := s.RecvMsg(&message); err != nil {
					return err
				}
				if err := s.SendMsg(&message); err != nil {
					return err
				}
			}
		})).Serve(l)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		for err == nil {
			var message []byte
			if _, message, err = c.Read(r.Context()); err == nil {
				err = c.Write(r.Context(), websocket.MessageBinary, message)
			}
		}
	})}
	return server.Serve(l)
}

// benchOctets is a gRPC codec of octets as they are.
type benchOctets struct{}

func (benchOctets) Name() string { return "octets" }

func (benchOctets) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, errors.New("not octets")
	}
	return mem.BufferSlice{mem.SliceBuffer(slices.Clone(*b))}, nil
}

func (benchOctets) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errors.New("not octets")
	}
	*b = data.Materialize()
	return nil
}
