package bus_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bus"
)

// TestToken checks that the secret is kept, is asked for, and is not told.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	c := bus.Config{
		Directory: dir, Listen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	s, err := bus.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	access := s.Access()
	if access.URL != s.URL() || !strings.HasPrefix(access.URL, "nats://127.0.0.1:") || strings.HasSuffix(access.URL, ":0") {
		t.Errorf("URL %s", access.URL)
	}
	file := filepath.Join(dir, "token")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token file: %v, %v", info, err)
	}
	if len(access.Token) < 20 {
		t.Errorf("a token of %d characters", len(access.Token))
	}
	for _, token := range []string{"", "wrong", access.Token + "x"} {
		_, err := bus.Open(t.Context(), bus.Config{URL: access.URL, Token: token})
		if err == nil || !strings.Contains(err.Error(), "Token") || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("with a wrong token: %v", err)
		}
	}
	if a := follow(t, s).Access(); a != access {
		t.Errorf("who was given access gives another: %v", a)
	}
	told := fmt.Sprintf("%v %+v %#v %s", access, access, access, access)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "access", access)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(told+log.String(), access.Token) {
		t.Error("the token is printed or logged")
	}

	if again := opened(t, c); again.Access().Token != access.Token {
		t.Error("another token after a restart")
	} else if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("with a token that others may read: %v", err)
	}
	if a := open(t, t.TempDir()).Access(); a != (bus.Access{}) {
		t.Errorf("a store that listens nowhere gives access: %v", a)
	}
}

func TestListenMistakes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for listen, want := range map[string]string{
		"127.0.0.1":           "want host:port",
		"127.0.0.1:x":         "0 to 65535",
		"127.0.0.1:70000":     "0 to 65535",
		"0.0.0.0:0":           "give TLS",
		":0":                  "give TLS",
		"192.0.2.1:4222":      "give TLS",
		"example.com:4222":    "give TLS",
		taken.Addr().String(): "choose another",
	} {
		_, err := bus.Open(t.Context(), bus.Config{Directory: t.TempDir(), Listen: listen})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), listen) {
			t.Errorf("%s: %v, want %s", listen, err, want)
		}
	}
	_, err = bus.Open(t.Context(), bus.Config{Directory: t.TempDir(), Listen: "127.0.0.1:0", TLS: &tls.Config{}})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("TLS without certificate: %v", err)
	}
}

// TestTLS listens at all addresses, with TLS.
func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &name, &name, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	s := opened(t, bus.Config{
		Directory: t.TempDir(), Listen: "localhost:0",
		TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
	})
	a := s.Access()
	if !strings.HasPrefix(a.URL, "tls://localhost:") {
		t.Errorf("URL %s", a.URL)
	}
	b, err := opened(t, bus.Config{URL: a.URL, Token: a.Token, TLS: &tls.Config{RootCAs: roots}}).Bucket(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "k", nil); err != nil {
		t.Error(err)
	}
	for _, url := range []string{a.URL, strings.Replace(a.URL, "tls://", "nats://", 1)} {
		if _, err := bus.Open(t.Context(), bus.Config{URL: url, Token: a.Token}); err == nil || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("%s without the root certificate: %v", url, err)
		}
	}
}
