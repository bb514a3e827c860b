// Dex as a provider of identities for tests: its own server with storage in memory, without its gRPC API, whose module
// is not published in the version that the command line of Dex needs.
//
// dex FILE: the file is JSON with the address, the clients and the people. People are read from it at every sign-on and
// every refresh, so that a test changes them as an administrator of the provider would.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/connectors"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/server/tokens"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
)

type person struct {
	Email    string   `json:"email"`
	Password string   `json:"password"`
	ID       string   `json:"id"`
	Groups   []string `json:"groups"`
}

type config struct {
	Issuer  string           `json:"issuer"`
	Address string           `json:"address"`
	Clients []storage.Client `json:"clients"`
	People  []person         `json:"people"`
}

func check(err error) {
	if err != nil {
		slog.Error("dex stops", "error", err)
		os.Exit(1)
	}
}

func load() config {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var read config
	check(json.Unmarshal(text, &read))
	return read
}

// people is a connector to the people of the file.
type people struct{}

func (people) Open(string, *slog.Logger) (connector.Connector, error) { return people{}, nil }

func (people) Prompt() string { return "Email" }

func (people) find(email string) (connector.Identity, string, bool) {
	for _, one := range load().People {
		if one.Email == email {
			identity := connector.Identity{
				UserID: one.ID, Username: one.Email, Email: one.Email, EmailVerified: true, Groups: one.Groups,
			}
			return identity, one.Password, true
		}
	}
	return connector.Identity{}, "", false
}

func (p people) Login(_ context.Context, _ connector.Scopes, email, password string) (connector.Identity, bool, error) {
	identity, wanted, found := p.find(email)
	return identity, found && wanted == password, nil
}

func (p people) Refresh(_ context.Context, _ connector.Scopes, before connector.Identity) (connector.Identity, error) {
	identity, _, found := p.find(before.Email)
	if !found {
		return identity, errors.New("the person was removed")
	}
	return identity, nil
}

// unlocked computes the new refresh token before the storage is locked: Dex reads the storage meanwhile, and the one in
// memory would wait for itself.
type unlocked struct{ storage.Storage }

func (s unlocked) UpdateRefreshToken(
	ctx context.Context, id string, update func(storage.RefreshToken) (storage.RefreshToken, error),
) error {
	before, err := s.GetRefresh(ctx, id)
	if err != nil {
		return err
	}
	after, err := update(before)
	if err != nil {
		return err
	}
	return s.Storage.UpdateRefreshToken(ctx, id, func(storage.RefreshToken) (storage.RefreshToken, error) { return after, nil })
}

func main() {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	read := load()
	store := unlocked{memory.New(logger)}
	for _, client := range read.Clients {
		check(store.CreateClient(ctx, client))
	}
	server.ConnectorsConfig["people"] = func() connectors.ConnectorConfig { return people{} }
	check(store.CreateConnector(ctx, storage.Connector{ID: "people", Name: "People", Type: "people"}))
	valid := time.Hour
	keys := signer.LocalConfig{KeysRotationPeriod: "6h", Algorithm: "ES256"}
	opened, err := keys.Open(ctx, store, valid, time.Now, logger)
	check(err)
	// Refresh tokens are replaced at each use, and the one before counts for a moment, as in Dex's own defaults.
	refreshing, err := tokens.NewRefreshTokenPolicy(logger, false, "", "", "3s")
	check(err)
	provider, err := server.NewServer(ctx, server.Config{
		Issuer:             read.Issuer,
		Storage:            store,
		SkipApprovalScreen: true,
		IDTokensValidFor:   valid,
		Logger:             logger,
		Signer:             opened,
		RefreshTokenPolicy: refreshing,
	})
	check(err)
	check(http.ListenAndServe(read.Address, provider))
}
