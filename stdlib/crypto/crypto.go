// Package crypto is the namespace std.crypto: digests, random ids and base64.
package crypto

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"

	"github.com/google/uuid"

	"ashlar/vm"
)

// MaxRandomBytes bounds one call of random_hex.
const MaxRandomBytes = 1 << 20

// Module declares the namespace.
func Module() *vm.Module {
	text := []vm.Param{{Name: "text", Type: vm.String}}
	data := []vm.Param{{Name: "data", Type: vm.Bytes}}
	return &vm.Module{
		Name: "std.crypto",
		Doc:  "Digests, random values (recorded, so that a replay gives them again) and base64.",
		Funcs: []vm.Function{
			{
				Name: "sha256", Doc: "The SHA-256 of bytes, in hexadecimal.", Params: data, Results: text, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					sum := sha256.Sum256([]byte(c.Str(0)))
					return []vm.Value{hex.EncodeToString(sum[:])}, nil
				},
			},
			{
				Name: "hmac_sha256", Doc: "The HMAC-SHA-256 of bytes under a key, in hexadecimal.", Effect: vm.Pure,
				Params: []vm.Param{{Name: "key", Type: vm.Bytes}, {Name: "data", Type: vm.Bytes}}, Results: text,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					mac := hmac.New(sha256.New, []byte(c.Str(0)))
					mac.Write([]byte(c.Str(1)))
					return []vm.Value{hex.EncodeToString(mac.Sum(nil))}, nil
				},
			},
			{
				Name: "random_hex", Doc: "So many random bytes, in hexadecimal.", Effect: vm.Read,
				Params: []vm.Param{{Name: "bytes", Type: vm.Integer}}, Results: text,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					n := c.Int(0, 0)
					if n < 1 || n > MaxRandomBytes {
						return nil, vm.Errorf("validation", "bytes must be 1 to %d, got %d", MaxRandomBytes, n)
					}
					b := make([]byte, n)
					if _, err := io.ReadFull(c.Host.Rand, b); err != nil {
						return nil, err
					}
					return []vm.Value{hex.EncodeToString(b)}, nil
				},
			},
			{
				Name: "uuid", Doc: "A random UUID (version 4).", Results: text, Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					id, err := uuid.NewRandomFromReader(c.Host.Rand)
					if err != nil {
						return nil, err
					}
					return []vm.Value{id.String()}, nil
				},
			},
			{
				Name: "base64_encode", Doc: "Bytes in base64 with padding.", Params: data, Results: text, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{base64.StdEncoding.EncodeToString([]byte(c.Str(0)))}, nil
				},
			},
			{
				Name: "base64_decode", Doc: "The bytes that base64 text stands for; raises where it is none.", Effect: vm.Pure,
				Params: text, Results: []vm.Param{{Name: "data", Type: vm.Bytes}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					b, err := base64.StdEncoding.DecodeString(c.Str(0))
					if err != nil {
						return nil, vm.Errorf("validation", "not base64: %v", err)
					}
					return []vm.Value{string(b)}, nil
				},
			},
		},
	}
}
