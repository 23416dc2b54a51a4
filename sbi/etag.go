package sbi

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// ETag returns the entity tag of a representation: equal if the octets are.
func ETag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// MatchETag reports whether a header If-Match or If-None-Match names a tag.
func MatchETag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || one == tag || one == "W/"+tag {
			return true
		}
	}
	return false
}

// InstanceID returns an id that is the same whenever the parts are: a UUID of
// version 5 (RFC 9562).
func InstanceID(parts ...string) string {
	sum := sha1.Sum([]byte("urn:weft:nf\x00" + strings.Join(parts, "\x00")))
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
