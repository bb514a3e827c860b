// The signs of the views in the navigation: lines on a square of 16, by the path of the view.
export const ICONS: Readonly<Record<string, string>> = {
  "/": "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5h-4.5zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5z",
  "/workloads": "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  "/submit": "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M8 5.5v5M5.5 8h5",
  "/cluster":
    "M4.5 4.5h7v7h-7zM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  "/organization": "M6 2.5h4v3H6zM2 10.5h4v3H2zM10 10.5h4v3h-4zM8 5.5V8M4 10.5V8h8v2.5",
  "/people":
    "M6 7.5a2.5 2.5 0 1 0 0-5a2.5 2.5 0 0 0 0 5M1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 2.8a2.5 2.5 0 0 1 0 4.4M12 9.8c1.6.5 2.5 1.8 2.5 3.7",
  "/policies": "M8 1.8l5 1.9v4c0 3.2-2.2 5.4-5 6.5c-2.8-1.1-5-3.3-5-6.5v-4zM5.8 8l1.6 1.6l2.8-3",
  "/library": "M8 2l6 3l-6 3l-6-3zM2 8l6 3l6-3M2 11l6 3l6-3",
  "/reports": "M3 13.5v-5M6.5 13.5V4M10 13.5v-7M13.5 13.5v-11",
  "/audit": "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M8 5v3.2l2.2 1.4",
  "/notifications": "M3.5 11.5h9c-1-1-1.2-2-1.2-4.2a3.3 3.3 0 0 0-6.6 0c0 2.2-.2 3.2-1.2 4.2M6.8 13.5a1.3 1.3 0 0 0 2.4 0",
  "/settings":
    "M2.5 4.5h6M12.5 4.5h1M2.5 11.5h1M7.5 11.5h6M10.5 2.8a1.7 1.7 0 1 0 0 3.4a1.7 1.7 0 0 0 0-3.4M5.5 9.8a1.7 1.7 0 1 0 0 3.4a1.7 1.7 0 0 0 0-3.4",
};
