import { expect, test } from "vitest";
import { type HeldAsset, membersOf, withAsset } from "./asset-members";

const SECRETS = new Map([["c1", "dockerhub"]]);

test.each<[HeldAsset, object]>([
  [{ kind: "compute", name: "two", spec: { gpuDevicesRequest: 2 } }, { compute: { gpuDevicesRequest: 2 } }],
  [
    {
      kind: "environment",
      name: "torch",
      spec: {
        image: "torch:2",
        runAsNonRoot: true,
        environmentVariables: [{ name: "A", value: "1" }, { name: "KEY", credential: { assetId: "c1", key: "password" } }],
        connections: [
          { name: "jupyter", internalToolInfo: { containerPort: 8888, toolType: "jupyter-notebook", connectionType: "ExternalUrl" } },
          { name: "wandb", externalToolInfo: { externalUrl: "https://w.example", toolType: "wandb" } },
        ],
      },
    },
    {
      image: "torch:2",
      security: { runAsNonRoot: true },
      environmentVariables: [{ name: "A", value: "1" }, { name: "KEY", secret: { name: "dockerhub", key: "password" } }],
      exposedUrls: [{ name: "jupyter", container: 8888, toolType: "jupyter-notebook", toolName: "jupyter" }],
      relatedUrls: [{ name: "wandb", url: "https://w.example", type: "wandb" }],
    },
  ],
  [
    { kind: "git", name: "code", spec: { repository: "r", passwordAssetId: "c1" } },
    { storage: { git: [{ name: "code", repository: "r", passwordSecret: "dockerhub" }] } },
  ],
  [
    { kind: "pvc", name: "data", spec: { path: "/data", claimInfo: { size: "1Gi" } }, claimName: "data-1" },
    { storage: { pvc: [{ name: "data", path: "/data", existingPvc: true, claimName: "data-1" }] } },
  ],
])("an asset sets members of a spec: %o", (asset, want) => {
  expect(membersOf(asset, SECRETS)).toEqual(want);
});

test("an asset wins over what the form had, and adds to its lists", () => {
  const nfs = (name: string, server: string) => ({ name, server });
  const asset: HeldAsset = { kind: "nfs", name: "home", spec: { server: "new" } };
  const spec = { leader: { image: "x", storage: { nfs: [nfs("home", "old"), nfs("data", "d")] } } };
  expect(withAsset(spec, ["leader"], asset, SECRETS)).toEqual({
    leader: { image: "x", storage: { nfs: [nfs("data", "d"), nfs("home", "new")] } },
  });
  const compute: HeldAsset = { kind: "compute", name: "one", spec: { gpuDevicesRequest: 1 } };
  expect(withAsset({ compute: { gpuDevicesRequest: 4, cpuCoreRequest: 2 } }, [], compute, SECRETS)).toEqual({
    compute: { gpuDevicesRequest: 1, cpuCoreRequest: 2 },
  });
});
