/** Whether the channels of a long recording are mixed into one or heard apart. */
export const CHANNEL_MODES = ['mix', 'separate'] as const;
export type ChannelMode = (typeof CHANNEL_MODES)[number];

/** What a webhook tells. */
export const WEBHOOK_TYPES = ['request.completed', 'request.failed'] as const;
export type WebhookType = (typeof WEBHOOK_TYPES)[number];
